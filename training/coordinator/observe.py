"""Looks at the swarm: progress records that were pushed to us, metrics records that we read."""

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from pydantic import ValidationError

from training.coordinator.aggregate import PeerView
from training.protocol.config import RunConfig
from training.protocol.envelope import EnvelopeError, peek_body
from training.protocol.keys import peer_id_of
from training.protocol.metrics import PeerMetrics, PeerObservation
from training.protocol.states import PeerState, Reach, Role
from training.swarm.records import MetricsRecord, ProgressRecord

GONE_AFTER = timedelta(seconds=60)
"""hivemind's own lifetime of a progress record: older ones say nothing of the present."""
_WORKING = frozenset({PeerState.TRAINING, PeerState.AVERAGING})


@dataclass(frozen=True)
class SeenMetrics:
    """A metrics record that fits the run."""

    record: MetricsRecord
    metrics: PeerMetrics | None
    """None for a stock trainer."""
    seen_at: datetime


def metrics_of(config: RunConfig, record: MetricsRecord) -> PeerMetrics | None:
    """Return the signed metrics in a record.

    The DHT has checked that the peer's RSA key wrote the record. The device's signature is for
    the site, which knows the devices: it travels on unopened.

    Raises:
        ValueError: the content is malformed, or of another run or peer.
    """
    if not record.jws:
        return None
    try:
        metrics = PeerMetrics.model_validate_json(json.dumps(peek_body(record.jws)))
    except (EnvelopeError, ValidationError) as error:
        raise ValueError(f"malformed metrics: {error}") from error
    ours = (config.run, config.lineage, peer_id_of(record.public_der))
    if (metrics.run, metrics.lineage, metrics.peer_id) != ours:
        raise ValueError("metrics of another run or peer")
    return metrics


class SwarmView:
    """The newest that is known of each peer."""

    def __init__(self, config: RunConfig) -> None:
        self._config = config
        self._progress: dict[str, ProgressRecord] = {}
        self._left: dict[str, datetime] = {}
        self._metrics: dict[str, SeenMetrics] = {}
        self.num_malformed = 0
        """Metrics records dropped in the newest reading."""

    def take_progress(self, record: ProgressRecord) -> None:
        """Take note of a verified progress record; older ones change nothing."""
        key = record.key_thumbprint
        if record.left:
            self._left[key] = record.received_at
            return
        known = self._progress.get(key)
        if known is None or record.reported_at > known.reported_at:
            self._progress[key] = record
            self._left.pop(key, None)

    def take_metrics(self, records: Iterable[MetricsRecord], now: datetime) -> list[SeenMetrics]:
        """Take a whole reading of the metrics key; return what fits the run."""
        seen: dict[str, SeenMetrics] = {}
        self.num_malformed = 0
        for record in records:
            try:
                metrics = metrics_of(self._config, record)
            except ValueError:
                self.num_malformed += 1
                continue
            seen[record.thumbprint] = SeenMetrics(record, metrics, self._seen_at(record, now))
        self._metrics = seen
        return list(seen.values())

    def peers(self, now: datetime, direct: Collection[str] = ()) -> list[PeerView]:
        """Return all peers heard of in the last minute.

        ``direct``: ids of peers that answer at their address.
        """
        self._progress = {
            key: r for key, r in self._progress.items() if r.received_at >= now - GONE_AFTER
        }
        self._left = {key: t for key, t in self._left.items() if t >= now - GONE_AFTER}
        keys = sorted(self._progress.keys() | self._metrics.keys())
        return [self._peer(key, direct) for key in keys]

    def _seen_at(self, record: MetricsRecord, now: datetime) -> datetime:
        """A record that did not change since the last reading is as old as it was then."""
        known = self._metrics.get(record.thumbprint)
        if known is not None and known.record == record:
            return known.seen_at
        if known is not None:
            return now
        lifetime = self._config.report.metrics_expire_seconds
        age = now.timestamp() - (record.expires_at - lifetime)
        return now - timedelta(seconds=min(max(age, 0.0), lifetime))

    def _peer(self, key: str, direct: Collection[str]) -> PeerView:
        progress, seen = self._progress.get(key), self._metrics.get(key)
        times = [progress.received_at] if progress else []
        times += [seen.seen_at] if seen else []
        epoch, samples, speed, is_client = _newest_numbers(progress, seen)
        metrics = seen.metrics if seen else None
        left_at = self._left.get(key)
        has_left = left_at is not None and (seen is None or seen.seen_at <= left_at)
        peer_id = progress.peer_id if progress else metrics.peer_id if metrics else ""
        reach = Reach.DIRECT if peer_id in direct else Reach.UNKNOWN
        observation = PeerObservation(
            key_thumbprint=key,
            peer_id=peer_id,
            seen_at=max(times),
            reach=Reach.CLIENT if is_client else reach,
            epoch=epoch,
            samples_accumulated=samples,
            samples_per_second=speed,
            loss=_loss(seen),
            jws=seen.record.jws if seen else "",
        )
        return PeerView(
            observation, _loss_samples(seen), is_training=_is_training(metrics) and not has_left
        )


def _is_training(metrics: PeerMetrics | None) -> bool:
    """Whether a peer computes by its own word; one that gives none is taken for a trainer."""
    return metrics is None or (metrics.role is Role.TRAINER and metrics.state in _WORKING)


def _newest_numbers(
    progress: ProgressRecord | None, seen: SeenMetrics | None
) -> tuple[int, int, float, bool]:
    """Return epoch, samples accumulated, samples per second, client mode."""
    metrics = seen.metrics if seen else None
    if progress and (metrics is None or progress.reported_at >= metrics.taken_at):
        # hivemind's rate is a moving average that starts high; ours is steadier.
        speed = metrics.samples_per_second if metrics else progress.samples_per_second
        return progress.epoch, progress.samples_accumulated, speed, progress.client_mode
    if metrics:
        client = metrics.client_mode
        return metrics.epoch, metrics.samples_accumulated, metrics.samples_per_second, client
    if seen:
        numbers = seen.record.numbers
        return numbers.step, numbers.samples_accumulated, numbers.samples_per_second, False
    raise ValueError("a peer that was neither pushed nor read")


def _loss(seen: SeenMetrics | None) -> float | None:
    if seen is None:
        return None
    return seen.metrics.loss if seen.metrics else seen.record.numbers.loss


def _loss_samples(seen: SeenMetrics | None) -> int:
    """Return over how many samples the loss is a mean, as well as it is known."""
    if seen is None:
        return 0
    metrics = seen.metrics
    if metrics is None:
        return max(1, seen.record.numbers.samples_accumulated)
    entered = [item for item in metrics.recent if item.samples]
    if entered:
        return max(entered, key=lambda item: item.epoch).samples
    return metrics.samples_accumulated
