"""Classes of machines: coarse enough that many share one. Pure.

The peers' table, the charts and the replay all use them. static/js/peerquery.js forms the same;
one table of cases tests both.
"""

import re
from functools import lru_cache
from typing import Final

UNKNOWN: Final = "unknown"
_MAKER = re.compile(r"\b(NVIDIA|GeForce|Tesla|Quadro|AMD|Radeon|Instinct)\b", re.IGNORECASE)
_SERIES = re.compile(r"\b(GTX|RTX) ?(\d{2})\d{2}\b", re.IGNORECASE)


@lru_cache(1024)
def hardware_class(device: str) -> str:
    """Return the class of a machine by what it computes on.

    ``cpu`` → ``CPU``, ``NVIDIA GeForce RTX 3090 Ti`` → ``RTX 30 series``,
    ``NVIDIA A100-SXM4-80GB`` → ``A100``.
    """
    text = " ".join(device.split())
    if not text:
        return UNKNOWN
    if "cpu" in text.lower():
        return "CPU"
    series = _SERIES.search(text)
    if series:
        return f"{series[1].upper()} {series[2]} series"
    words = _MAKER.sub(" ", text).split()
    return words[0].split("-")[0][:24] if words and words[0].split("-")[0] else text[:24]


def hardware_class_kept(name: str) -> str:
    """Return a class as it was written down, by today's name: once every card was its own."""
    series = _SERIES.search(name)
    return f"{series[1].upper()} {series[2]} series" if series else name
