"""Tokens for kafka-python's OAUTHBEARER, got as Kafka's own Java client gets them (KIP-768): client credentials.

1. A token is asked for when the first connection needs one, and kept for 80 % of the life the endpoint gives it.
2. An endpoint that does not tell a life has its tokens used once for each connection.
3. No redirect is followed: the secret goes to the endpoint that was named, and nowhere else.
4. What goes wrong is one line that names the endpoint; neither the secret nor the answer's body is in it.
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

from streaming.config.redaction import without_credentials
from streaming.config.security import Secrets, SecuritySettings
from streaming.errors import RemedyError

REQUEST_TIMEOUT_SECONDS = 10.0
USED_FOR = 0.8
"""Part of a token's life after which the next one is asked for."""

_MAX_ANSWER_BYTES = 1 << 20


class TokenError(RemedyError):
    """No token is to be had."""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:  # noqa: ANN401 - the library's signature
        return None


class ClientCredentialsTokens(AbstractTokenProvider):  # type: ignore[misc]
    """Gives the token of the moment to as many connections as ask, from any thread."""

    def __init__(self, security: SecuritySettings, secrets: Secrets, now_seconds: Callable[[], float]) -> None:
        super().__init__()
        self._endpoint = str(security.oauth_token_endpoint)
        self._scope = security.oauth_scope
        self._credentials = _basic(str(security.oauth_client_id), secrets.oauth_client_secret or "")
        self._now_seconds = now_seconds
        trust = ssl.create_default_context(cafile=security.oauth_ca_file)
        self._opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=trust), _NoRedirect)
        self._lock = threading.Lock()
        self._token, self._use_until_seconds = "", float("-inf")

    def token(self) -> str:
        """Return a token that is valid. Raises TokenError."""
        with self._lock:
            if self._now_seconds() >= self._use_until_seconds:
                asked_at_seconds = self._now_seconds()
                self._token, life_seconds = self._ask()
                self._use_until_seconds = asked_at_seconds + USED_FOR * life_seconds
            return self._token

    def _ask(self) -> tuple[str, float]:
        form = {"grant_type": "client_credentials"} | ({"scope": self._scope} if self._scope else {})
        request = urllib.request.Request(  # noqa: S310 - the settings allow http and https only
            self._endpoint,
            data=urllib.parse.urlencode(form).encode(),
            headers={"Authorization": self._credentials, "Accept": "application/json"},
        )
        try:
            with self._opener.open(request, timeout=REQUEST_TIMEOUT_SECONDS) as response:
                return _read(response.read(_MAX_ANSWER_BYTES))
        except urllib.error.HTTPError as refused:
            self._fail(f"answers {refused.code}", "kafka.security.oauth_client_id and oauth_client_secret")
        except (OSError, HTTPException) as unreachable:
            self._fail(f"gives no answer ({unreachable})", "kafka.security.oauth_token_endpoint and oauth_ca_file")
        except (ValueError, KeyError, TypeError):
            self._fail("gives no access_token", "kafka.security.oauth_token_endpoint")

    def _fail(self, what: str, settings: str) -> NoReturn:
        raise TokenError(f"the token endpoint {without_credentials(self._endpoint)} {what}: check {settings}")


def _basic(client_id: str, client_secret: str) -> str:
    """As Java's client writes it: not URL-encoded, which most endpoints do not expect (KIP-1025)."""
    return "Basic " + base64.b64encode(f"{client_id}:{client_secret}".encode()).decode()


def _read(body: bytes) -> tuple[str, float]:
    answer = json.loads(body)
    token = answer["access_token"]
    if not isinstance(token, str) or not token.isascii() or not token.isprintable() or not token:
        raise ValueError
    return token, max(0.0, float(answer.get("expires_in") or 0))
