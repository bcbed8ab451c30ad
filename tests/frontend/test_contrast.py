"""Text and controls have the contrast that WCAG AA asks for, in light and dark."""

import re
from pathlib import Path

import pytest

TOKENS = (Path(__file__).parents[2] / "static" / "css" / "tokens.css").read_text()
PAIR = re.compile(r"--([a-z0-9-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)")
PLAIN = re.compile(r"--([a-z0-9-]+): (#[0-9a-f]{6});")
TEXT = [
    (ink, ground)
    for ground in ("bg", "surface", "raised")
    for ink in ("text", "muted", "honey-text")
] + [
    ("faint", "bg"), ("faint", "surface"), ("honey-ink", "honey"), ("honey-ink", "honey-strong"),
    ("text", "honey-wash"), ("muted", "honey-wash"), ("bad", "surface"),
    *((tone, f"{tone}-wash") for tone in ("ok", "warn", "bad", "info", "idle")),
]  # fmt: skip
MARKS = [("line-strong", "surface"), ("focus", "bg"), ("focus", "surface")]


def colours(theme: int) -> dict[str, str]:
    found = {name: values[theme] for name, *values in PAIR.findall(TOKENS)}
    return found | dict(PLAIN.findall(TOKENS))


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_text_stands_out_at_least_four_and_a_half_to_one(theme: int) -> None:
    known = colours(theme)
    weak = {pair: round(contrast(known[pair[0]], known[pair[1]]), 2) for pair in TEXT}
    assert {pair: value for pair, value in weak.items() if value < 4.5} == {}


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_borders_of_inputs_and_focus_rings_stand_out_three_to_one(theme: int) -> None:
    known = colours(theme)
    weak = {pair: round(contrast(known[pair[0]], known[pair[1]]), 2) for pair in MARKS}
    assert {pair: value for pair, value in weak.items() if value < 3} == {}


def test_the_formula_is_the_standards() -> None:
    assert round(contrast("#000000", "#ffffff"), 2) == 21
    assert round(contrast("#777777", "#ffffff"), 2) == 4.48
