"""Addresses of groups: whatever Kafka lets a group be called has one, and it leads back to the group.

1. A group's page is `/groups/<id>`, its id percent-encoded as UTF-8, slashes included.
2. `.`, `..` and the empty id would be taken for something else on the way: those are `/groups/?id=<id>`.
3. Where several clusters are watched, an address names one: `?cluster=<name>`, its name as labels have it.
4. A lone surrogate, which no UTF-8 has, is encoded as if it had one. Bytes that are nothing else lead nowhere.
"""

from __future__ import annotations

from urllib.parse import parse_qs, quote

GROUP_PAGE = "/groups/"
GROUP_API = "/api/v1/groups/"
_NEVER_A_SEGMENT = frozenset({"", ".", ".."})


def group_address(group_id: str, prefix: str = GROUP_PAGE, cluster: str | None = None) -> str:
    r"""The address of a group's page, or of its JSON; `cluster` is told where there are several.

    >>> group_address("a/b?<é>"), group_address(".."), group_address("\ud800")
    ('/groups/a%2Fb%3F%3C%C3%A9%3E', '/groups/?id=..', '/groups/%ED%A0%80')
    >>> group_address("a", cluster="eu"), group_address("", cluster="e/u")
    ('/groups/a?cluster=eu', '/groups/?id=&cluster=e%2Fu')
    """
    path, reported = prefix, [] if cluster is None else [("cluster", cluster)]
    if group_id in _NEVER_A_SEGMENT:
        reported = [("id", group_id), *reported]
    else:
        path += _encoded(group_id)
    query = "&".join(f"{name}={_encoded(value)}" for name, value in reported)
    return f"{path}?{query}" if query else path


def overview_address(cluster: str) -> str:
    """The address of all groups of one cluster; of all where it has no name.

    >>> overview_address("e/u"), overview_address("")
    ('/?cluster=e%2Fu', '/')
    """
    return f"/?cluster={_encoded(cluster)}" if cluster else "/"


def _encoded(text: str) -> str:
    return quote(text.encode("utf-8", "surrogatepass"), safe="")


def addressed_group(rest: str, query: str) -> str | None:
    r"""The group meant by the path after the prefix, as WSGI hands it over (bytes as Latin-1), and the query.

    >>> addressed_group("a/b", ""), addressed_group("\xff", ""), addressed_group("", "id=..")
    ('a/b', None, '..')
    """
    raw = rest.encode("latin-1", "replace") if rest else argument(query, "id").encode("utf-8", "surrogatepass")
    try:
        return raw.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return None


def argument(query: str, name: str) -> str:
    """The first value of a name in a query; empty where it is not there, or no such query can be.

    >>> argument("q=a+b%2F&q=c", "q"), argument("", "q")
    ('a b/', '')
    """
    try:
        return parse_qs(query, keep_blank_values=True, errors="surrogatepass", max_num_fields=20).get(name, [""])[0]
    except ValueError:
        return ""
