"""From what was seen of each peer to figures of the whole swarm. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from training.protocol.config import RunConfig
from training.protocol.metrics import EpochReport, PeerObservation, SwarmSnapshot
from training.protocol.names import TRAINER_VERSION
from training.protocol.states import Reach

MAX_PEERS = 5000
MAX_WORK_ROWS = 20_000
"""Rows of finished epochs in one snapshot, so that it stays far below the site's limit."""

MAX_JWS_CHARACTERS = 6_000_000
"""Of all signed reports in one snapshot; the peers that do not fit have their turn in the next."""


@dataclass(frozen=True)
class PeerView:
    """One peer, with what the figures need beside its observation."""

    observation: PeerObservation
    loss_samples: int = 0
    """Samples over which the observation's loss is a mean."""
    is_training: bool = True
    """False for peers that have no part in the figures, such as one that left."""


@dataclass(frozen=True)
class SwarmFigures:
    """Figures of the swarm at one time."""

    epoch: int
    samples_accumulated: int
    samples_per_second: float
    loss: float | None
    num_live: int


def is_live(view: PeerView, now: datetime, *, metrics_seconds: float) -> bool:
    """Whether a peer still counts: ours speak every few seconds, stock ones once a minute."""
    longest = metrics_seconds if view.observation.jws else max(metrics_seconds, 60.0)
    return view.is_training and now - view.observation.seen_at <= timedelta(seconds=longest)


def swarm_figures(
    views: Sequence[PeerView], now: datetime, *, last_epoch: int, metrics_seconds: float
) -> SwarmFigures:
    """Return the swarm's figures.

    The epoch is the newest one of a live peer that others can reach: hivemind too ignores what
    peers in client mode say of it. With no such peer it stays at ``last_epoch``. Only peers in
    that epoch have samples towards it; a peer that lags behind still computes.
    """
    live = [v for v in views if is_live(v, now, metrics_seconds=metrics_seconds)]
    leaders = [v.observation.epoch for v in live if v.observation.reach is not Reach.CLIENT]
    epoch = max(leaders, default=last_epoch)
    return SwarmFigures(
        epoch=epoch,
        samples_accumulated=sum(
            v.observation.samples_accumulated for v in live if v.observation.epoch == epoch
        ),
        samples_per_second=sum(v.observation.samples_per_second for v in live),
        loss=_mean_loss(live),
        num_live=len(live),
    )


def _mean_loss(views: Sequence[PeerView]) -> float | None:
    """Return the mean over all samples; a loss over no samples is not heard."""
    known = [
        (v.loss_samples, v.observation.loss)
        for v in views
        if v.observation.loss is not None and v.loss_samples > 0
    ]
    total = sum(n for n, _ in known)
    # Shares first: a product of two large numbers would overflow.
    return sum(n / total * loss for n, loss in known) if total else None


def reports_that_fit(pending: Sequence[EpochReport]) -> tuple[EpochReport, ...]:
    """Return the oldest reports that one snapshot can carry; the others wait for their turn."""
    rows = 0
    chosen: list[EpochReport] = []
    for report in pending:
        rows += 1 + len(report.work)
        if chosen and rows > MAX_WORK_ROWS:
            break
        chosen.append(report)
    return tuple(chosen[:1000])


def peers_that_fit(
    peers: Sequence[PeerObservation], seq: int, limit: int = MAX_JWS_CHARACTERS
) -> tuple[PeerObservation, ...]:
    """Return the peers of one snapshot, by key; when not all fit, others the next time."""
    ordered = sorted(peers, key=lambda o: o.key_thumbprint)
    length = sum(len(o.jws) for o in ordered)
    if length <= limit:
        return tuple(ordered)
    start = seq * len(ordered) * limit // length % len(ordered)
    rest, chosen = limit, []
    for peer in (*ordered[start:], *ordered[:start]):
        rest -= len(peer.jws)
        if rest < 0:
            break
        chosen.append(peer)
    return tuple(sorted(chosen, key=lambda o: o.key_thumbprint))


def snapshot_make(
    config: RunConfig,
    figures: SwarmFigures,
    *,
    views: Sequence[PeerView],
    seq: int,
    now: datetime,
    pending: Sequence[EpochReport],
    bootstrap_peers: Sequence[str],
) -> SwarmSnapshot:
    """Return the numbered snapshot; of too many peers, those seen last are kept."""
    newest = sorted((v.observation for v in views), key=lambda o: o.seen_at, reverse=True)
    peers = peers_that_fit(newest[:MAX_PEERS], seq)
    return SwarmSnapshot(
        run=config.run,
        lineage=config.lineage,
        seq=seq,
        taken_at=now,
        epoch=figures.epoch,
        samples_accumulated=figures.samples_accumulated,
        samples_per_second=figures.samples_per_second,
        loss=figures.loss,
        peers=peers,
        finished_epochs=reports_that_fit(pending),
        bootstrap_peers=tuple(bootstrap_peers[:64]),
        coordinator_version=TRAINER_VERSION,
    )
