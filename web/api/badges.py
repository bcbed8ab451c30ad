"""Small pictures of runs and accounts for other pages."""

from collections.abc import Mapping
from typing import Any

from django.http import HttpResponse
from django.utils.html import format_html

_COLOURS = {
    "training": "#2e7d32",
    "averaging": "#2e7d32",
    "warming_up": "#2e7d32",
    "finished": "#1565c0",
    "stalled": "#b26a00",
    "waiting_for_peers": "#b26a00",
}
_GREY = "#5f6368"
_CHARACTER = 6.6
"""Width in pixels; a little generous, because fonts differ."""
_TEMPLATE = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="20" role="img"'
    ' aria-label="{title}: {text}"><title>{title}: {text}</title>'
    '<rect width="{left}" height="20" fill="#333"/>'
    '<rect x="{left}" width="{right}" height="20" fill="{colour}"/>'
    '<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">'
    '<text x="6" y="14">{title}</text><text x="{start}" y="14">{text}</text></g></svg>'
)


def run_badge(state: Mapping[str, Any]) -> HttpResponse:
    """Return the picture of a live state."""
    peers = state["num_peers"]
    text = f"{str(state['state']).replace('_', ' ')}, epoch {state['epoch']}, {peers} peer"
    text += "" if peers == 1 else "s"
    return _badge(str(state["run"]), text, _COLOURS.get(str(state["state"]), _GREY))


def user_badge(username: str, samples: int) -> HttpResponse:
    """Return the picture of what an account has given."""
    return _badge(username, f"{samples:,} samples", _COLOURS["finished"])


def _badge(title: str, text: str, colour: str) -> HttpResponse:
    left, right = (round(len(part) * _CHARACTER) + 12 for part in (title, text))
    svg = format_html(
        _TEMPLATE,
        width=left + right,
        left=left,
        right=right,
        start=left + 6,
        colour=colour,
        title=title,
        text=text,
    )
    return HttpResponse(svg, content_type="image/svg+xml")
