"""Template tags and filters of the site (built in everywhere). How numbers and times are written.

static/js/format.js writes the same numbers in the browser; one table of cases tests both.
"""

import json
import re
from datetime import UTC, datetime
from typing import Any

from django import template
from django.templatetags.static import static
from django.utils.html import format_html
from django.utils.safestring import SafeString

from web.core.wording import STATE_TONES, STATE_WORDS

register = template.Library()

_NONE = "\u2013"
_STATE_PREFIX = re.compile(
    r"^(draft|warming up|training|averaging|stalled|finishing|finished|unknown|paused): "
)
_SIZES = ("B", "kB", "MB", "GB", "TB", "PB")


@register.filter
def number(value: float | None) -> str:
    """Return a count with thousands separators: ``12,345``."""
    return _NONE if value is None else f"{round(value):,}"


@register.filter
def short(value: float | None) -> str:
    """Return at most three significant digits and a unit: ``12.3k``."""
    if value is None:
        return _NONE
    for limit, suffix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= limit * 0.9995:
            return f"{_three(value / limit)}{suffix}"
    return _three(value)


def _three(value: float) -> str:
    size = abs(value)
    digits = 0 if size >= 99.95 or value == round(value) else 1 if size >= 9.995 else 2
    return f"{value:.{digits}f}"


@register.filter
def loss(value: float | None) -> str:
    """Return a loss as ``4.213``, small ones as ``0.00421``."""
    if value is None:
        return _NONE
    if 0 < abs(value) < 0.0001:
        return "< 0.0001"
    return f"{value:.3f}" if abs(value) >= 0.1 or value == 0 else f"{value:.3g}"


@register.filter
def percent(value: float | None) -> str:
    """Return a share (0 to 1) as ``12.3 %``."""
    if value is None:
        return _NONE
    if 0 < value < 0.0001:
        return "< 0.01 %"
    return f"{value * 100:.3g} %" if value < 0.9995 else "100 %"


@register.filter
def size(value: float) -> str:
    """Return bytes as ``1.23 MB``."""
    index = 0
    while abs(value) >= 999.5 and index < len(_SIZES) - 1:
        value, index = value / 1000, index + 1
    return f"{_three(value)} {_SIZES[index]}"


@register.filter
def seconds(value: float) -> str:
    """Return a length of time as ``8 s``, ``3 min``, ``5 h``, ``12 days``."""
    if value < 60:
        return f"{max(0, round(value))} s"
    for limit, divisor, unit in ((3600, 60, "min"), (172_800, 3600, "h")):
        if value < limit:
            return f"{int(value // divisor)} {unit}"
    return f"{int(value // 86_400)} days"


@register.filter
def pretty_json(value: Any) -> str:
    """Return a JSON value over several lines."""
    return json.dumps(value, indent=2, ensure_ascii=False)


@register.filter
def instant(value: datetime | str | None) -> datetime | None:
    """Return an aware datetime of what may be JSON text."""
    if isinstance(value, str):
        return datetime.fromisoformat(value) if value else None
    return value


@register.filter
def hardware(value: dict[str, Any]) -> str:
    """Return a machine in words: ``NVIDIA T4, 4 cores, 16 GB, Linux``."""
    parts = [str(value.get("device") or "")]
    if value.get("cpus"):
        parts.append(f"{value['cpus']} cores")
    if value.get("memory_bytes"):
        parts.append(size(value["memory_bytes"]))
    parts.append(str(value.get("system") or ""))
    return ", ".join(part for part in parts if part) or "hardware unknown"


@register.simple_tag
def age(value: datetime | str | None, live: str = "", never: str = "never") -> SafeString:
    """Return ``<time>`` with the age of an instant, absolute on hover; scripts let it tick.

    ``live`` names the field of the live state that it follows.
    """
    at = instant(value)
    hook = format_html(' data-live="{}"', live) if live else ""
    if at is None:
        return format_html("<time data-age{}>{}</time>", hook, never)
    at = at.astimezone(UTC)
    return format_html(
        '<time data-age{} datetime="{}" title="{}">{} ago</time>',
        hook, at.isoformat(), f"{at:%Y-%m-%d %H:%M:%S} UTC",
        seconds((datetime.now(UTC) - at).total_seconds()),
    )  # fmt: skip


@register.filter
def state_words(state: Any) -> str:
    """Return a state's name for people: ``Waiting for peers``."""
    return STATE_WORDS.get(str(state), str(state).replace("_", " ").capitalize())


@register.filter
def state_tone(state: Any) -> str:
    """Return which colour a state has: ok, warn, bad, info or idle."""
    return STATE_TONES.get(str(state), "idle")


@register.filter
def evidence(reason: str) -> str:
    """Return a state's evidence without the state's name, which a chip shows already."""
    text = _STATE_PREFIX.sub("", reason)
    return text[:1].upper() + text[1:]


@register.simple_tag
def icon(name: str) -> SafeString:
    """Return an icon of static/img/icons.svg, hidden from assistive technology."""
    return format_html(
        '<svg aria-hidden="true" width="20" height="20"><use href="{}#{}"></use></svg>',
        static("img/icons.svg"), name,
    )  # fmt: skip


@register.simple_tag(takes_context=True)
def query(context: template.Context, **changes: Any) -> str:
    """Return the page's query string with some parameters changed; None removes one."""
    params = context["request"].GET.copy()
    for name, value in changes.items():
        if value is None:
            params.pop(name, None)
        else:
            params[name] = value
    return f"?{params.urlencode()}"


@register.simple_tag(takes_context=True)
def here(context: template.Context, prefix: str, *, exact: bool = False) -> SafeString | str:
    """Return ``aria-current`` when the page's path is or begins with ``prefix``."""
    path = context["request"].path
    is_here = path == prefix if exact else path.startswith(prefix)
    return SafeString(' aria-current="page"') if is_here else ""


@register.filter
def field_kind(field: Any) -> str:
    """Return a form field's widget type, such as ``checkbox``."""
    return str(getattr(field.field.widget, "input_type", "textarea"))


@register.simple_tag
def field_input(field: Any) -> SafeString:
    """Return a form field's input, tied to its help and errors for screen readers."""
    described = [f"{field.id_for_label}_help"] if field.help_text else []
    attrs: dict[str, Any] = {}
    if field.errors:
        described.append(f"{field.id_for_label}_error")
        attrs["aria-invalid"] = "true"
    if described:
        attrs["aria-describedby"] = " ".join(described)
    return SafeString(field.as_widget(attrs=attrs))


@register.simple_tag
def trend(loss_now: float | None, loss_first: float | None) -> str:
    """Return how far a loss has come since the first epoch: ``↓ 23 % overall``."""
    if loss_now is None:
        return "after the first epoch"
    if not loss_first:
        return "of the last epoch"
    change = loss_now / loss_first - 1
    arrow = "↓" if change < 0 else "↑" if change > 0 else "→"
    return f"{arrow} {percent(abs(change))} overall"
