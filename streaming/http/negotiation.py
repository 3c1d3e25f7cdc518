"""Selects the format and the compression that a client accepts, by RFC 9110, sections 12.4 and 12.5.

The weight is the `q` value in the header `Accept` or `Accept-Encoding`. A weight of 0 means "not acceptable".

1. The response of `/metrics` has the format with the largest weight. If several elements of the header match a format,
   the most exact element sets its weight. For example, `text/plain` is more exact than `text/*`. If two formats have
   equal weights, the format with the more exact element wins. If the elements are equally exact, the format that comes
   first in `FORMATS` wins.
2. If the client accepts none of the formats, the server uses the first format in `FORMATS`.
3. The server uses gzip if the weight of gzip is above 0 and not below the weight of `identity`. The weight of gzip
   comes from the element `gzip`, or else from `x-gzip`, or else from `*`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from prometheus_client.exposition import choose_encoder

from streaming.prometheus.exposition import Encoder

FORMATS = (("text/plain", "0.0.4"), ("application/openmetrics-text", "1.0.0"), ("text/plain", "1.0.0"))
"""Supported media types with their versions. The preferred media type is first."""


@dataclass(frozen=True, slots=True)
class _Element:
    name: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    weight: float = 0.0

    def exactness(self, media_type: str, version: str) -> int:
        """Return a number from 0 to 4 for a media type. 4 is the most exact match. 0 means no match."""
        if self.name == media_type:
            return {version: 4, "": 3}.get(self.parameters.get("version", ""), 0)
        return {"*/*": 1, f"{media_type.partition('/')[0]}/*": 2}.get(self.name, 0)


def select_encoder(accept: str) -> tuple[Encoder, str]:
    """Return the encoder and the content type for an Accept header (rules 1 and 2).

    >>> select_encoder("application/openmetrics-text;q=0, text/plain")[1]
    'text/plain; version=0.0.4; charset=utf-8'
    """
    elements = _elements(accept)
    weight, _, place, escaping = max(_rank(elements, place) for place in range(len(FORMATS)))
    media_type, version = FORMATS[-place if weight > 0 else 0]
    return choose_encoder(f"{media_type};version={version}{escaping}")


def accepts_gzip(accept_encoding: str) -> bool:
    """Return True if an Accept-Encoding header accepts gzip (rule 3).

    >>> accepts_gzip("gzip, deflate"), accepts_gzip("gzip;q=0, *"), accepts_gzip("*;q=0.5"), accepts_gzip("identity")
    (True, False, True, False)
    """
    weights = {element.name: element.weight for element in _elements(accept_encoding)}
    weight = weights.get("gzip", weights.get("x-gzip", weights.get("*", 0.0)))
    return weight > 0 and weight >= weights.get("identity", 0.0)


def _rank(elements: Sequence[_Element], index: int) -> tuple[float, int, int, str]:
    """Return the rank of `FORMATS[index]` (rule 1): weight, exactness, negative index, and the parameter `escaping`."""
    media_type, version = FORMATS[index]
    exactness, element = max(
        ((element.exactness(media_type, version), element) for element in elements),
        key=lambda match: match[0],
        default=(0, _Element("")),
    )
    escaping = element.parameters.get("escaping")
    return element.weight if exactness else 0.0, exactness, -index, f";escaping={escaping}" if escaping else ""


def _elements(header: str) -> list[_Element]:
    elements = []
    for text in header.split(","):
        name, *given = (part.strip() for part in text.split(";"))
        pairs = (parameter.partition("=") for parameter in given)
        parameters = {key.strip().lower(): value.strip().strip('"') for key, _, value in pairs}
        if name:
            elements.append(_Element(name.lower(), parameters, _weight(parameters.get("q", "1"))))
    return elements


def _weight(text: str) -> float:
    """Parse a weight. Return 1 for an invalid weight."""
    with suppress(ValueError):
        if 0 <= (weight := float(text)) <= 1:
            return weight
    return 1.0
