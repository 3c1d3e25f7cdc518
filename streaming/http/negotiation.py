"""What a client accepts, by RFC 9110, sections 12.4 and 12.5: a weight of 0 means "not this".

1. `/metrics` is written in the format with the largest weight. Each format has the weight of the element that names it
   most exactly. Of equals it is the one named more exactly, then the first of `FORMATS`.
2. If no format is accepted, it is the first of `FORMATS`: a scraper can report what it does not understand.
3. gzip is used if `gzip`, `x-gzip` or else `*` has a weight above 0, and no less than `identity` has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from prometheus_client.exposition import choose_encoder

from streaming.prometheus.exposition import Encoder

FORMATS = (("text/plain", "0.0.4"), ("application/openmetrics-text", "1.0.0"), ("text/plain", "1.0.0"))
"""Media types and versions that are written, the preferred one first."""


@dataclass(frozen=True, slots=True)
class _Element:
    """One element of an Accept or Accept-Encoding header."""

    name: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    weight: float = 0.0

    def exactness(self, media_type: str, version: str) -> int:
        """How exactly it names a format; 0 if it does not."""
        if self.name == media_type:
            return {version: 4, "": 3}.get(self.parameters.get("version", ""), 0)
        return {"*/*": 1, f"{media_type.partition('/')[0]}/*": 2}.get(self.name, 0)


def chosen_encoder(accept: str) -> tuple[Encoder, str]:
    """The encoder for what an Accept header asks for, and its content type (rules 1 and 2).

    >>> chosen_encoder("application/openmetrics-text;q=0, text/plain")[1]
    'text/plain; version=0.0.4; charset=utf-8'
    """
    elements = _elements(accept)
    weight, _, place, escaping = max(_ranked(elements, place) for place in range(len(FORMATS)))
    media_type, version = FORMATS[-place if weight > 0 else 0]
    return choose_encoder(f"{media_type};version={version}{escaping}")


def accepts_gzip(accept_encoding: str) -> bool:
    """Whether an Accept-Encoding header takes gzip (rule 3).

    >>> accepts_gzip("gzip, deflate"), accepts_gzip("gzip;q=0, *"), accepts_gzip("*;q=0.5"), accepts_gzip("identity")
    (True, False, True, False)
    """
    weights = {element.name: element.weight for element in _elements(accept_encoding)}
    weight = weights.get("gzip", weights.get("x-gzip", weights.get("*", 0.0)))
    return weight > 0 and weight >= weights.get("identity", 0.0)


def _ranked(elements: Sequence[_Element], place: int) -> tuple[float, int, int, str]:
    """Rule 1 for the format at a place: what is better is greater. The last part says how names are to be escaped."""
    media_type, version = FORMATS[place]
    exactness, element = max(
        ((element.exactness(media_type, version), element) for element in elements),
        key=lambda found: found[0],
        default=(0, _Element("")),
    )
    escaping = element.parameters.get("escaping")
    return element.weight if exactness else 0.0, exactness, -place, f";escaping={escaping}" if escaping else ""


def _elements(header: str) -> list[_Element]:
    found = []
    for written in header.split(","):
        name, *given = (part.strip() for part in written.split(";"))
        pairs = (parameter.partition("=") for parameter in given)
        parameters = {key.strip().lower(): value.strip().strip('"') for key, _, value in pairs}
        if name:
            found.append(_Element(name.lower(), parameters, _weight(parameters.get("q", "1"))))
    return found


def _weight(written: str) -> float:
    """A weight that cannot be read counts as none: the element is accepted."""
    try:
        weight = float(written)
    except ValueError:
        return 1.0
    return weight if 0 <= weight <= 1 else 1.0
