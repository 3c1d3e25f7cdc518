"""Test the numbered rules of `oauth.py` with a real token endpoint on loopback."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from streaming.config.security import Secrets, SecuritySettings
from streaming.embedded.ports import free_port
from streaming.security.oauth import ClientCredentialsTokens, TokenError

SECRET = "hunter2"  # noqa: S105 - what must not be shown


@dataclass
class Endpoint:
    """A token endpoint: the answer that it returns, and the requests that it received."""

    answer: bytes
    status: int = 200
    location: str | None = None
    url: str = ""
    asked: list[tuple[str, str]] = field(default_factory=list)

    def tokens(self, clock: list[float] | None = None, scope: str | None = None) -> ClientCredentialsTokens:
        """Return a token provider that uses this endpoint."""
        security = SecuritySettings(
            protocol="SASL_SSL",
            mechanism="OAUTHBEARER",
            oauth_token_endpoint=self.url,
            oauth_client_id="monitor",
            oauth_client_secret=SECRET,
            oauth_scope=scope,
        )
        return ClientCredentialsTokens(security, Secrets(oauth_client_secret=SECRET), lambda: (clock or [0.0])[0])


@contextmanager
def endpoint(answer: bytes, status: int = 200, location: str | None = None) -> Iterator[Endpoint]:
    """Run a token endpoint."""
    served = Endpoint(answer, status, location)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            form = self.rfile.read(int(self.headers["Content-Length"])).decode()
            served.asked.append((self.headers["Authorization"], form))
            self.send_response(served.status)
            if served.location:
                self.send_header("Location", served.location)
            self.end_headers()
            self.wfile.write(served.answer)

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        served.url = f"http://127.0.0.1:{server.server_port}/token"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield served
        server.shutdown()


def granted(token: str, expires_in: object) -> bytes:
    return json.dumps({"access_token": token, "token_type": "Bearer", "expires_in": expires_in}).encode()


def test_the_request_is_that_of_kafkas_java_client() -> None:
    """RFC 6749, section 4.4: client credentials with HTTP Basic."""
    with endpoint(granted("t", 60)) as served:
        assert served.tokens(scope="read all").token() == "t"
        [(authorization, form)] = served.asked
    assert base64.b64decode(authorization.removeprefix("Basic ")).decode() == f"monitor:{SECRET}"
    assert form == "grant_type=client_credentials&scope=read+all"


def test_a_token_is_used_for_four_fifths_of_its_lifetime() -> None:
    """Rule 1: a token must be valid during the whole handshake, and not every connection needs a new token."""
    clock = [100.0]
    with endpoint(granted("first", 60)) as served:
        tokens = served.tokens(clock)
        assert tokens.token() == "first"
        served.answer = granted("second", 60)
        clock[0] += 47.9
        assert tokens.token() == "first"
        clock[0] += 0.2
        assert tokens.token() == "second"
        assert len(served.asked) == 2


@pytest.mark.parametrize("expires_in", [None, 0, -5])
def test_a_token_of_unknown_lifetime_is_used_once(expires_in: int | None) -> None:
    """Rule 2: the next connection requests a new token."""
    with endpoint(granted("t", expires_in)) as served:
        tokens = served.tokens()
        assert [tokens.token(), tokens.token()] == ["t", "t"]
        assert len(served.asked) == 2


def test_a_redirect_is_not_followed() -> None:
    """Rule 3: the redirect could send the secret to any server."""
    with endpoint(granted("stolen", 60)) as elsewhere, endpoint(b"", 302, elsewhere.url) as served:
        with pytest.raises(TokenError, match="returned HTTP status 302"):
            served.tokens().token()
        assert elsewhere.asked == []


@pytest.mark.parametrize(
    ("status", "answer", "message"),
    [
        (
            401,
            b'{"error": "invalid_client"}',
            "returned HTTP status 401: check kafka.security.oauth_client_id and oauth_client_secret",
        ),
        (500, b"hunter2", "returned HTTP status 500"),
        (200, b"<html>sign in</html>", "returned no access_token"),
        (200, b'{"error": "x"}', "returned no access_token"),
        (200, b"[]", "returned no access_token"),
        (200, b'{"access_token": 5}', "returned no access_token"),
        (200, granted("two\nlines", 60), "returned no access_token"),
        (200, granted("t", "soon"), "returned no access_token"),
    ],
)
def test_an_error_is_one_line_without_the_secret(status: int, answer: bytes, message: str) -> None:
    """Rule 4: the error names the endpoint and the reason."""
    with endpoint(answer, status) as served, pytest.raises(TokenError) as refused:
        served.tokens().token()
    assert str(refused.value).startswith(f"the token endpoint {served.url} {message}")
    assert SECRET not in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1


def test_the_error_for_an_unreachable_endpoint_is_one_line() -> None:
    unreachable = Endpoint(b"", url=f"http://127.0.0.1:{free_port()}/token")
    with pytest.raises(TokenError, match=r"did not answer .*: check kafka\.security\.oauth_token_endpoint"):
        unreachable.tokens().token()
