"""What others wrote, made safe to show in a terminal."""

import unicodedata

MAX_TEXT = 500


def text_safe(text: str, limit: int = MAX_TEXT) -> str:
    """Return one line without anything that a terminal would obey.

    Escape and control characters, marks of another writing direction, and line breaks become
    blanks; no more than three combining marks stay on one letter; longer text is cut.
    """
    kept: list[str] = []
    marks = 0
    for char in text[: limit * 4]:
        marks = marks + 1 if unicodedata.combining(char) else 0
        if marks <= 3:
            kept.append(char if char.isprintable() else " ")
    line = " ".join("".join(kept).split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"
