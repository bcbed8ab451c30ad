"""Which of a round's members a report names, so that it stays small. Pure."""

import hashlib
from collections.abc import Mapping, Sequence

from training.protocol.metrics import MAX_ROUND_MEMBERS, MAX_ROUND_ROWS, MAX_ROUNDS, RoundSeen


def round_seen(
    epoch: int, weights: Mapping[str, int | None], *, own: str, group_size: int
) -> RoundSeen:
    """Return what peer ``own`` saw, with at most ``MAX_ROUND_MEMBERS`` others.

    The choice follows from the epoch and both peers' ids: every member is named by about as many
    others as it names itself, and nobody can choose whom to leave out.
    """
    names = sorted(weights, key=lambda other: _place(epoch, own, other))[:MAX_ROUND_MEMBERS]
    return RoundSeen(
        epoch=epoch, group_size=group_size, weights={name: weights[name] for name in names}
    )


def rounds_that_fit(rounds: Sequence[RoundSeen]) -> tuple[RoundSeen, ...]:
    """Return the newest rounds that one report can carry; ``rounds`` are oldest first."""
    rows = 0
    chosen: list[RoundSeen] = []
    for item in reversed(rounds[-MAX_ROUNDS:]):
        rows += len(item.weights)
        if rows > MAX_ROUND_ROWS:
            break
        chosen.append(item)
    return tuple(reversed(chosen))


def _place(epoch: int, own: str, other: str) -> bytes:
    return hashlib.sha256(f"{epoch} {own} {other}".encode()).digest()
