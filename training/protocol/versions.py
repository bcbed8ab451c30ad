"""Versions of the trainer, compared by their numbers. Pure."""

import re

_NUMBERS = re.compile(r"\d+(?:\.\d+)*")


def is_version_at_least(version: str, wanted: str) -> bool:
    """Whether ``version`` is ``wanted`` or newer; one without numbers is too old."""
    have, need = _numbers(version), _numbers(wanted)
    if not have:
        return False
    length = max(len(have), len(need))
    return _padded(have, length) >= _padded(need, length)


def _numbers(version: str) -> tuple[int, ...]:
    match = _NUMBERS.match(version.strip().removeprefix("v"))
    return tuple(int(part) for part in match[0].split(".")) if match else ()


def _padded(numbers: tuple[int, ...], length: int) -> tuple[int, ...]:
    return numbers + (0,) * (length - len(numbers))
