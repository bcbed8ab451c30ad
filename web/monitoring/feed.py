"""Lines of the events feed about peers and epochs. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from training.protocol.api import LivePeer
from training.protocol.metrics import EpochReport
from web.monitoring.livestate import peer_moves

MAX_LINES = 5
"""More peers or epochs than this in one snapshot are summed up in one line."""
_WORDS = {"joined": "joined", "left": "left", "banned": "was banned"}


@dataclass(frozen=True)
class EventLine:
    """A line of the feed."""

    kind: str
    """Dotted, past tense."""
    text: str
    peer: str = ""
    """Public id of the one peer that it is about."""


@dataclass(frozen=True)
class EpochLine:
    """What a line about a finished epoch says."""

    report: EpochReport
    samples: int
    num_peers: int
    seconds: float


def peer_lines(old: Mapping[str, LivePeer], new: Mapping[str, LivePeer]) -> list[EventLine]:
    """Return who joined and who left."""
    moves = list(peer_moves(old, new))
    counts = Counter(move for move, _, _ in moves)
    lines = [
        EventLine(f"peer.{move}", peer_line(move, _title(peer)), key)
        for move, key, peer in moves
        if counts[move] <= MAX_LINES
    ]
    lines += [
        EventLine(f"peer.{move}", f"{count} peers {_WORDS[move].replace('was', 'were')}")
        for move, count in counts.items()
        if count > MAX_LINES
    ]
    return lines


def peer_line(move: str, title: str) -> str:
    """Return the line that says what one peer did."""
    return f"{title} {_WORDS[move]}"


def epoch_lines(epochs: Sequence[EpochLine]) -> list[EventLine]:
    """Return which epochs finished."""
    if len(epochs) > MAX_LINES:
        first, last = epochs[0].report.epoch, epochs[-1].report.epoch
        return [EventLine("epoch.finished", f"Epochs {first} to {last} finished")]
    return [EventLine("epoch.finished", _epoch_text(epoch)) for epoch in epochs]


def _epoch_text(epoch: EpochLine) -> str:
    peers = f"{epoch.num_peers} peer{'' if epoch.num_peers == 1 else 's'}"
    length = f" in {epoch.seconds:.0f} s" if epoch.seconds >= 1 else ""
    loss = "" if epoch.report.loss is None else f", loss {epoch.report.loss:.3f}"
    samples = f"{epoch.samples:,} samples by {peers}"
    return f"Epoch {epoch.report.epoch} finished: {samples}{length}{loss}"


def _title(peer: LivePeer) -> str:
    words: Iterable[str] = (peer.name, f"({peer.device})" if peer.device else "")
    return " ".join(word for word in words if word)
