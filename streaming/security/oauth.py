"""For kafka-python, request OAUTHBEARER tokens with client credentials, as Kafka's Java client does (KIP-768).

1. The first connection requests a token. Further connections use the token until 80 % of its lifetime has passed.
2. If the endpoint returns no lifetime, each connection requests a new token.
3. Redirects are not followed, so the secret goes only to the configured endpoint.
4. An error message is one line with the endpoint. The message never contains the secret or the response body.
"""

from __future__ import annotations

import base64
import json
import ssl
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from http.client import HTTPException
from typing import Any, NoReturn

from kafka.net.sasl.oauth import AbstractTokenProvider

from streaming.config.secret_settings import without_credentials
from streaming.config.security import Secrets, SecuritySettings
from streaming.errors import RemedyError

REQUEST_TIMEOUT_SECONDS = 10.0
USED_LIFETIME_FRACTION = 0.8
"""When this fraction of a token's lifetime has passed, the next connection requests a new token."""

_MAX_ANSWER_BYTES = 1 << 20


class TokenError(RemedyError):
    """Error: the token endpoint returned no token."""


class _RejectRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:  # noqa: ANN401 - the library's signature
        return None


class ClientCredentialsTokens(AbstractTokenProvider):  # type: ignore[misc]
    """Provides the current token for all connections. Several threads can call the methods at the same time."""

    def __init__(self, security: SecuritySettings, secrets: Secrets, now_seconds: Callable[[], float]) -> None:
        super().__init__()
        self._endpoint = str(security.oauth_token_endpoint)
        self._scope = security.oauth_scope
        # As in Kafka's Java client, the values are not URL-encoded: most endpoints expect plain values (KIP-1025).
        credentials = f"{security.oauth_client_id}:{secrets.oauth_client_secret or ''}"
        self._authorization = "Basic " + base64.b64encode(credentials.encode()).decode()
        self._now_seconds = now_seconds
        context = ssl.create_default_context(cafile=security.oauth_ca_file)
        self._opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=context), _RejectRedirects)
        self._lock = threading.Lock()
        self._token, self._use_until_seconds = "", float("-inf")

    def token(self) -> str:
        """Return a valid token. Raises TokenError."""
        with self._lock:
            if self._now_seconds() >= self._use_until_seconds:
                requested_at_seconds = self._now_seconds()
                self._token, lifetime_seconds = self._request_token()
                self._use_until_seconds = requested_at_seconds + USED_LIFETIME_FRACTION * lifetime_seconds
            return self._token

    def _request_token(self) -> tuple[str, float]:
        form = {"grant_type": "client_credentials"} | ({"scope": self._scope} if self._scope else {})
        request = urllib.request.Request(  # noqa: S310 - the settings allow http and https only
            self._endpoint,
            data=urllib.parse.urlencode(form).encode(),
            headers={"Authorization": self._authorization, "Accept": "application/json"},
        )
        try:
            with self._opener.open(request, timeout=REQUEST_TIMEOUT_SECONDS) as response:
                return _parse_token(response.read(_MAX_ANSWER_BYTES))
        except urllib.error.HTTPError as refused:
            self._fail(f"returned HTTP status {refused.code}", "kafka.security.oauth_client_id and oauth_client_secret")
        except (OSError, HTTPException) as unreachable:
            self._fail(f"did not answer ({unreachable})", "kafka.security.oauth_token_endpoint and oauth_ca_file")
        except (ValueError, KeyError, TypeError):
            self._fail("returned no access_token", "kafka.security.oauth_token_endpoint")

    def _fail(self, problem: str, settings: str) -> NoReturn:
        raise TokenError(f"the token endpoint {without_credentials(self._endpoint)} {problem}: check {settings}")


def _parse_token(body: bytes) -> tuple[str, float]:
    answer = json.loads(body)
    token = answer["access_token"]
    if not isinstance(token, str) or not token.isascii() or not token.isprintable() or not token:
        raise ValueError
    return token, max(0.0, float(answer.get("expires_in") or 0))
