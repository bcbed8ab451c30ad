"""The epoch as a honeycomb: each cell is a share of the target batch size, coloured by peer. Pure.

static/js/comb.js computes the same; one table of cases tests both.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt
from typing import Any, Final

COLUMNS: Final = 36
ROWS: Final = 3
NUM_CELLS: Final = COLUMNS * ROWS
NUM_SLOTS: Final = 8
"""Colours; a ninth peer shares the first one's."""
OTHERS: Final = "others"
"""Slot of samples that no listed peer claims."""

_SIDE: Final = 10.0
_WIDTH: Final = sqrt(3) * _SIDE
VIEW_BOX: Final = f"0 0 {(COLUMNS + 0.5) * _WIDTH:.1f} {(1.5 * ROWS + 0.5) * _SIDE:.1f}"


@dataclass(frozen=True)
class Share:
    key: str
    name: str
    samples: int
    slot: str
    part: float = 0.0
    """Of the target batch size, from 0 on."""


@dataclass(frozen=True)
class Cell:
    x: str
    y: str
    slot: str
    """Empty for a cell that is not filled yet."""


@dataclass(frozen=True)
class Comb:
    cells: tuple[Cell, ...]
    shares: tuple[Share, ...]
    """Largest first."""
    fraction: float
    filled: int
    """Samples, at most the target batch size."""
    view_box: str = VIEW_BOX


def epoch_shares(state: Mapping[str, Any]) -> tuple[Share, ...]:
    """Return who computed what of the current epoch, in the order of the cells."""
    total, epoch, target = state["samples_accumulated"], state["epoch"], state["target_batch_size"]
    shares = []
    for index, key in enumerate(sorted(state["peers"])):
        peer = state["peers"][key]
        if peer["epoch"] == epoch and peer["samples_accumulated"] > 0:
            name = " · ".join(part for part in (peer["name"], peer.get("device")) if part)
            slot = str(index % NUM_SLOTS)
            samples = peer["samples_accumulated"]
            shares.append(Share(key, name, samples, slot, samples / target))
    rest = total - sum(share.samples for share in shares)
    if rest > 0:  # the sum is newer than what trainers have signed for
        shares.append(Share("", "Just reported", rest, OTHERS, rest / target))
    return tuple(shares)


def cell_slots(shares: tuple[Share, ...], target: int) -> list[str]:
    """Return the slot of each cell; a cell belongs to whoever holds its middle."""
    slots, index, reached = [], 0, shares[0].samples if shares else 0
    for cell in range(NUM_CELLS):
        middle = (cell + 0.5) * target / NUM_CELLS
        while index < len(shares) and reached <= middle:
            index += 1
            reached += shares[index].samples if index < len(shares) else 0
        slots.append(shares[index].slot if index < len(shares) else "")
    return slots


def comb(state: Mapping[str, Any]) -> Comb:
    """Return the honeycomb of a live state's current epoch."""
    shares, target = epoch_shares(state), state["target_batch_size"]
    cells = tuple(
        Cell(*_place(index), slot) for index, slot in enumerate(cell_slots(shares, target))
    )
    filled = min(target, state["samples_accumulated"])
    return Comb(cells, tuple(sorted(shares, key=lambda s: -s.samples)), filled / target, filled)


def _place(index: int) -> tuple[str, str]:
    column, row = divmod(index, ROWS)
    x = (column + (0.5 if row % 2 else 0)) * _WIDTH
    return f"{x:.1f}", f"{row * 1.5 * _SIDE:.1f}"
