"""Converts names of groups, topics and hosts to addresses and back. Every name that Kafka allows has an address.

1. The page of a group is `/groups/<id>`. The id is percent-encoded as UTF-8, including slashes.
2. Browsers remove path segments that are `.`, `..` or empty. So a group with the id `.`, `..` or an empty id has the
   address `/groups/?id=<id>`. Topics have the addresses `/topics/<name>` and `/topics/?name=<name>`. Client hosts have
   the addresses `/hosts/<name>` and `/hosts/?name=<name>`.
3. If the monitor watches several clusters, each address contains the name of a cluster: `?cluster=<name>`. The
   parameter `cluster` contains the same name as the metric label `cluster`.
4. Strict UTF-8 cannot encode a name with lone surrogates. So addresses are encoded with Python's `surrogatepass`. An
   address with other invalid UTF-8 matches no group.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import parse_qsl, quote

GROUP_PAGE = "/groups/"
GROUP_API = "/api/v1/groups/"
TOPIC_PAGE = "/topics/"
HOST_PAGE = "/hosts/"
MAX_PARAMETERS = 20
MAX_LISTED = 20_000
"""Maximum number of groups in one response."""
_NOT_A_SEGMENT = frozenset({"", ".", ".."})


def group_address(group_id: str, prefix: str = GROUP_PAGE, cluster: str | None = None) -> str:
    r"""Return the address of a group's page (prefix GROUP_PAGE) or JSON document (prefix GROUP_API).

    >>> group_address("a/b?<é>"), group_address(".."), group_address("\ud800")
    ('/groups/a%2Fb%3F%3C%C3%A9%3E', '/groups/?id=..', '/groups/%ED%A0%80')
    >>> group_address("a", cluster="eu"), group_address("", cluster="e/u")
    ('/groups/a?cluster=eu', '/groups/?id=&cluster=e%2Fu')
    """
    return _address_of(group_id, prefix, "id", cluster)


def topic_address(topic: str, cluster: str | None = None) -> str:
    """Return the address of a topic's page.

    >>> topic_address("orders"), topic_address("..", "eu")
    ('/topics/orders', '/topics/?name=..&cluster=eu')
    """
    return _address_of(topic, TOPIC_PAGE, "name", cluster)


def host_address(host: str, cluster: str | None = None) -> str:
    """Return the address of a client host's page."""
    return _address_of(host, HOST_PAGE, "name", cluster)


def _address_of(name: str, prefix: str, parameter: str, cluster: str | None) -> str:
    path, parameters = prefix, [] if cluster is None else [("cluster", cluster)]
    if name in _NOT_A_SEGMENT:
        parameters = [(parameter, name), *parameters]
    else:
        path += _percent_encode(name)
    return _with_query(path, parameters)


def _with_query(path: str, parameters: Iterable[tuple[str, str]]) -> str:
    query = "&".join(f"{_percent_encode(name)}={_percent_encode(value)}" for name, value in parameters)
    return f"{path}?{query}" if query else path


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a request: the percent-encoded path, and the query."""

    path: str
    query: str

    @property
    def parameters(self) -> Sequence[tuple[str, str]]:
        """The names and values of all query parameters."""
        return parameters(self.query)

    def argument(self, name: str) -> str:
        """Return the first value of a query parameter, or an empty text."""
        return argument(self.query, name) or ""

    def whole_number(self, name: str, default: int, maximum: int) -> int:
        """Return the value of a query parameter as a whole number, but at most `maximum`.

        Return `default` if the value is not a whole number or has more than eight digits.

        >>> [Address("/", f"limit={value}").whole_number("limit", 7, 100) for value in ("3", "-1", "", "9" * 9, "101")]
        [3, 7, 7, 7, 100]
        """
        given = parse_whole_number(self.argument(name))
        return default if given is None else min(given, maximum)

    def change(self, **changes: str | int | None) -> str:
        """Return the address with changed parameters. None removes a parameter.

        >>> Address("/", "q=a+b&sort=lag").change(sort=None, state="Stable")
        '/?q=a%20b&state=Stable'
        """
        changed = [(name, value) for name, value in self.parameters if name not in changes]
        changed += [(name, str(value)) for name, value in changes.items() if value is not None]
        return _with_query(self.path, changed)


def parse_whole_number(text: str) -> int | None:
    """Return the number, or None if the text is not a whole number or has more than eight digits."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 9 else None


def parse_address(address: str) -> Address:
    """Return the path and the query of an address.

    >>> parse_address("/groups/a?cluster=eu").change(at="2026-11-22T22:04")
    '/groups/a?cluster=eu&at=2026-11-22T22%3A04'
    """
    path, _, query = address.partition("?")
    return Address(path, query)


def parameters(query: str) -> Sequence[tuple[str, str]]:
    """Return the names and values of the parameters. The result is empty if the query is not readable."""
    try:
        return parse_qsl(query, keep_blank_values=True, errors="surrogatepass", max_num_fields=MAX_PARAMETERS)
    except ValueError:
        return []


def is_readable(query: str) -> bool:
    """Return True if a query has at most MAX_PARAMETERS parameters, and all its bytes are UTF-8 (rule 4)."""
    return bool(parameters(query)) or not query.strip("&")


def overview_address(cluster: str) -> str:
    """Return the address of the list of all groups of a cluster, or of all clusters if `cluster` is empty.

    >>> overview_address("e/u"), overview_address("")
    ('/?cluster=e%2Fu', '/')
    """
    return _with_query("/", [("cluster", cluster)] if cluster else [])


def _percent_encode(text: str) -> str:
    return quote(text.encode("utf-8", "surrogatepass"), safe="")


def encoded_path(path: str) -> str:
    r"""Return the percent-encoded path of a request. WSGI decodes the bytes of a path as Latin-1.

    >>> encoded_path("/topics/a/b?x"), encoded_path("/hosts/\xc3\xa9"), encoded_path("/incidents/0a")
    ('/topics/a%2Fb%3Fx', '/hosts/%C3%A9', '/incidents/0a')
    """
    prefix = next((one for one in (GROUP_PAGE, GROUP_API, TOPIC_PAGE, HOST_PAGE) if path.startswith(one)), "")
    rest = path.removeprefix(prefix).encode("latin-1", "replace")
    return prefix + quote(rest, safe="" if prefix else "/")


def addressed_name(rest: str, query: str, parameter: str = "id") -> str | None:
    r"""Return the name in the rest of a path after the prefix, or None if the name is not valid UTF-8 (rule 4).

    >>> addressed_name("a/b", ""), addressed_name("\xff", ""), addressed_name("", "id=..")
    ('a/b', None, '..')
    """
    given = argument(query, parameter) or ""
    raw = rest.encode("latin-1", "replace") if rest else given.encode("utf-8", "surrogatepass")
    try:
        return raw.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return None


def argument(query: str, name: str) -> str | None:
    """Return the first value of a query parameter, or None if the query does not contain the parameter.

    >>> argument("q=a+b%2F&q=c", "q"), argument("group=", "group"), argument("", "group")
    ('a b/', '', None)
    """
    return next((value for given, value in parameters(query) if given == name), None)
