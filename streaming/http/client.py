"""Sends requests to HTTP servers: a monitor, Prometheus, Alertmanager.

The name and the password come from the user's `.netrc` file, as with `curl --netrc`. So no command line contains a
password.
"""

from __future__ import annotations

import base64
import netrc
from collections.abc import Mapping
from contextlib import closing
from http.client import HTTPConnection, HTTPResponse, HTTPSConnection
from urllib.parse import urlsplit

from streaming.errors import RemedyError

TIMEOUT_SECONDS = 15.0


class NetrcError(RemedyError):
    """Error: the file `.netrc` cannot be read."""


def request(url: str, path: str, body: bytes | None = None) -> tuple[int, bytes]:
    """Send GET, or POST with a JSON body. Return the response's status and content. Raises OSError or HTTPException."""
    parts = urlsplit(url)
    connect = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    headers = {**_credentials(parts.hostname or ""), **({} if body is None else {"Content-Type": "application/json"})}
    with closing(connect(parts.hostname or "", parts.port, timeout=TIMEOUT_SECONDS)) as connection:
        connection.request("GET" if body is None else "POST", parts.path.rstrip("/") + path, body, headers)
        response: HTTPResponse = connection.getresponse()
        return response.status, response.read()


def _credentials(host: str) -> Mapping[str, str]:
    try:
        known = netrc.netrc().authenticators(host)
    except FileNotFoundError:
        return {}
    except (netrc.NetrcParseError, UnicodeDecodeError, OSError):
        raise NetrcError("~/.netrc cannot be read: correct its syntax and its permissions") from None
    if known is None:
        return {}
    return {"Authorization": "Basic " + base64.b64encode(f"{known[0]}:{known[2]}".encode()).decode()}
