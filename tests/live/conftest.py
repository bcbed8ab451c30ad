"""Ticks are short in these tests; the one that counts patches a second makes them long again."""

import pytest

from web.live import room, viewer

TICK_SECONDS = 0.1


@pytest.fixture(autouse=True)
def ticks(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Make ticks short; the result can make them long again."""
    monkeypatch.setattr(room, "TICK_SECONDS", TICK_SECONDS)
    monkeypatch.setattr(viewer, "TICK_SECONDS", TICK_SECONDS)
    return monkeypatch
