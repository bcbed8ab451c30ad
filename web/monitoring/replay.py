"""Reads of the swarm's past: one moment, throughput by hardware class, the marks of a timeline."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from training.protocol.states import LiveState, PeerState
from web.accounts.names import public_name
from web.monitoring.hardware import hardware_class_kept
from web.monitoring.models import Peer, SwarmMoment
from web.monitoring.moments import MAX_CLASSES, OTHERS, UNVERIFIED
from web.monitoring.observed import SITE_NAME, UNVERIFIED_NAME
from web.monitoring.rollup import Columns, rows_keep
from web.runs.models import Run

MAX_SERIES_POINTS = 1000


@dataclass(frozen=True)
class PastPeer:
    """A trainer as it was."""

    name: str
    state: PeerState
    epoch: int
    samples_per_second: float
    hardware: str
    """Its class."""


@dataclass(frozen=True)
class PastSwarm:
    """The swarm at one time, as far as it is kept."""

    at: datetime
    """When it was so: at the asked instant or before it."""
    state: LiveState
    reason: str
    """Of the condition that the swarm was in; empty when it is not kept."""
    lineage: int
    epoch: int
    loss: float | None
    samples_per_second: float
    samples_total: int
    num_peers: int
    counts: Mapping[str, int]
    """Trainers by state."""
    classes: Mapping[str, float]
    peers: Sequence[PastPeer]
    """The fastest; ``num_more`` others are not kept by name."""
    num_more: int
    before: datetime | None
    """The kept moment before this one, and the one after it."""
    after: datetime | None


def swarm_at(run: Run, at: datetime) -> PastSwarm | None:
    """Return the swarm as it was at an instant; None when nothing so old is kept. Six queries."""
    moment = run.moments.filter(at__lte=at).order_by("-at").first()
    moment = moment or run.moments.order_by("at").first()
    if moment is None:
        return None
    turn = run.turns.filter(at__lte=max(at, moment.at)).order_by("-at", "-id").first()
    # What turned after the moment says more than the moment: the coordinator went silent.
    is_later = turn is not None and turn.at >= moment.at
    state = turn.condition if turn and is_later and turn.condition != "running" else moment.state
    peers = _peers(run, moment)
    return PastSwarm(
        at=moment.at,
        state=LiveState(state),
        reason=turn.reason if turn else "",
        lineage=moment.lineage,
        epoch=moment.epoch,
        loss=moment.loss,
        samples_per_second=moment.samples_per_second,
        samples_total=moment.samples_total,
        num_peers=moment.num_peers,
        counts=moment.counts,
        classes=_classes(moment.classes),
        peers=peers,
        num_more=max(0, sum(moment.counts.values()) - len(peers)),
        before=_neighbour(run.moments.filter(at__lt=moment.at).order_by("-at")),
        after=_neighbour(run.moments.filter(at__gt=moment.at).order_by("at")),
    )


def moments_span(run: Run) -> tuple[datetime, datetime] | None:
    """Return the first and the last instant that a moment is kept of."""
    first = _neighbour(run.moments.order_by("at"))
    last = _neighbour(run.moments.order_by("-at"))
    return (first, last) if first and last else None


def run_throughput(
    run: Run, start: datetime | None = None, end: datetime | None = None, points: int = 500
) -> Columns:
    """Return ``t`` and samples per second of each hardware class that was there.

    At most ``points`` moments; those with the highest and the lowest total of each stretch are
    among them. A class that was not there at a moment has 0.
    """
    rows = run.moments.order_by("at")
    if start is not None:
        rows = rows.filter(at__gte=start)
    if end is not None:
        rows = rows.filter(at__lte=end)
    count = rows.count()
    stride = max(1, -(-count * 3 // max(3, min(points, MAX_SERIES_POINTS))))
    kept: list[tuple[datetime, dict[str, float]]] = []
    batch: list[tuple[datetime, dict[str, float]]] = []
    for row in rows.values_list("at", "classes").iterator(chunk_size=2000):
        batch.append(row)
        if len(batch) == stride:
            kept += rows_keep(batch, (_total,))
            batch = []
    kept += rows_keep(batch, (_total,))
    return _class_columns(kept)


def _class_columns(rows: Sequence[tuple[datetime, dict[str, float]]]) -> Columns:
    """Return a column per class: the largest of the whole stretch, and the others as one.

    Each moment keeps few classes, but over a long time other ones.
    """
    named = [_classes(classes) for _, classes in rows]
    sums: Counter[str] = Counter()
    for classes in named:
        sums.update(classes)
    ranked = sorted(sums.keys() - {OTHERS}, key=lambda name: (-sums[name], name))
    largest = sorted(ranked[:MAX_CLASSES], key=lambda name: name == UNVERIFIED)
    columns: Columns = {"t": [at.timestamp() for at, _ in rows]}
    columns |= {name: [classes.get(name, 0.0) for classes in named] for name in largest}
    folded = {OTHERS, *ranked[MAX_CLASSES:]} & sums.keys()
    if folded:
        columns[OTHERS] = [round(sum(c.get(n, 0.0) for n in folded), 2) for c in named]
    return columns


def _classes(kept: Mapping[str, float]) -> dict[str, float]:
    """Return a moment's classes by today's names."""
    classes: dict[str, float] = {}
    for name, rate in kept.items():
        name = hardware_class_kept(name)
        classes[name] = classes.get(name, 0.0) + rate
    return classes


def _total(row: tuple[datetime, dict[str, float]]) -> float:
    return sum(row[1].values())


def _neighbour(rows: Any) -> datetime | None:
    found: datetime | None = rows.values_list("at", flat=True).first()
    return found


def _peers(run: Run, moment: SwarmMoment) -> list[PastPeer]:
    """Return the kept rows with the names that their accounts show today."""
    keys = [row[0] for row in moment.peers]
    known = Peer.objects.filter(run=run, public_id__in=keys).select_related("device__user")
    names = {
        peer.public_id: SITE_NAME if peer.device.user.is_service else public_name(peer.device.user)
        for peer in known
    }
    return [
        PastPeer(
            names.get(key, UNVERIFIED_NAME),
            PeerState(state),
            epoch,
            rate,
            hardware_class_kept(hardware),
        )
        for key, state, epoch, rate, hardware in moment.peers
    ]
