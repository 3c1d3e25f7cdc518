"""Converts group ids to addresses and back. Every group id that Kafka allows has an address.

1. The page of a group is `/groups/<id>`. The id is percent-encoded as UTF-8, including slashes.
2. If a segment of a path is `.`, `..` or empty, browsers change the path. So if a group id is `.`, `..` or empty, its
   address is `/groups/?id=<id>`.
3. If the monitor watches several clusters, each address contains the name of a cluster: `?cluster=<name>`. The name is
   the same as in the metric label `cluster`.
4. A lone surrogate is encoded with the general rule of UTF-8, although UTF-8 does not allow surrogates. If an address
   contains other invalid UTF-8, the address does not belong to any group.
"""

from __future__ import annotations

from urllib.parse import parse_qs, quote

GROUP_PAGE = "/groups/"
GROUP_API = "/api/v1/groups/"
_NOT_A_SEGMENT = frozenset({"", ".", ".."})


def group_address(group_id: str, prefix: str = GROUP_PAGE, cluster: str | None = None) -> str:
    r"""Return the address of a group's page or JSON document. `prefix` selects the page or the document.

    `cluster` is None if the monitor watches only one cluster.

    >>> group_address("a/b?<é>"), group_address(".."), group_address("\ud800")
    ('/groups/a%2Fb%3F%3C%C3%A9%3E', '/groups/?id=..', '/groups/%ED%A0%80')
    >>> group_address("a", cluster="eu"), group_address("", cluster="e/u")
    ('/groups/a?cluster=eu', '/groups/?id=&cluster=e%2Fu')
    """
    path, parameters = prefix, [] if cluster is None else [("cluster", cluster)]
    if group_id in _NOT_A_SEGMENT:
        parameters = [("id", group_id), *parameters]
    else:
        path += _percent_encode(group_id)
    query = "&".join(f"{name}={_percent_encode(value)}" for name, value in parameters)
    return f"{path}?{query}" if query else path


def overview_address(cluster: str) -> str:
    """Return the address of the list of all groups of one cluster.

    If `cluster` is empty, return the address of the list for all clusters.

    >>> overview_address("e/u"), overview_address("")
    ('/?cluster=e%2Fu', '/')
    """
    return f"/?cluster={_percent_encode(cluster)}" if cluster else "/"


def _percent_encode(text: str) -> str:
    return quote(text.encode("utf-8", "surrogatepass"), safe="")


def addressed_group(rest: str, query: str) -> str | None:
    r"""Return the group id in an address. The result is None if the bytes are not UTF-8 (rule 4).

    `rest` is the path after the prefix, as WSGI passes it (bytes as Latin-1).

    >>> addressed_group("a/b", ""), addressed_group("\xff", ""), addressed_group("", "id=..")
    ('a/b', None, '..')
    """
    raw = rest.encode("latin-1", "replace") if rest else argument(query, "id").encode("utf-8", "surrogatepass")
    try:
        return raw.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return None


def argument(query: str, name: str) -> str:
    """Return the first value of a query parameter.

    The result is empty if the query does not contain the parameter, or if the query is invalid.

    >>> argument("q=a+b%2F&q=c", "q"), argument("", "q")
    ('a b/', '')
    """
    try:
        return parse_qs(query, keep_blank_values=True, errors="surrogatepass", max_num_fields=20).get(name, [""])[0]
    except ValueError:
        return ""
