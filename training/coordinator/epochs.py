"""Which samples of which peer count in which epoch. Pure: records and times in, reports out.

A peer's samples of an epoch count when they entered the average that ended it:

* A verified progress record says how many were collected; the largest one stands.
* The peer's signed metrics name its finished epochs (``recent``). They can lower the record (a
  peer that had to reload its state threw its samples away) and replace it when we were not
  listening all the time. A peer whose metrics cover an epoch without naming it took no part.
* A peer that publishes no metrics counts once it shows a later epoch: one that died before the
  average never does.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from training.coordinator.journal import Journal, OpenEpoch, PeerMark, Work
from training.protocol.config import RunConfig
from training.protocol.metrics import EpochReport, EpochWork, PeerMetrics
from training.protocol.states import Role
from training.swarm.records import ProgressRecord

MAX_PENDING = 1000
"""Reports kept for a site that does not answer; a snapshot carries no more than this."""
FORGET_AFTER = timedelta(minutes=10)


@dataclass(frozen=True)
class EpochRules:
    """Times of the counting rule."""

    grace: timedelta
    """From the first sight of the next epoch to the report: peers finish at different times."""
    patience: timedelta
    """Longest wait for peers that are alive and have not shown the next epoch."""
    live: timedelta
    """A peer that was not heard of for this long is not waited for."""
    settle: timedelta
    """Epochs seen so soon after a start were not observed from their beginning."""

    @classmethod
    def of(cls, config: RunConfig) -> "EpochRules":
        """Return the times that fit a run's rhythms."""
        publish = config.report.publish_seconds
        grace = config.swarm.matchmaking_seconds + publish
        return cls(
            grace=timedelta(seconds=grace),
            patience=timedelta(seconds=grace + config.swarm.averaging_timeout_seconds),
            live=timedelta(seconds=max(10.0, 5 * publish)),
            settle=timedelta(seconds=max(10.0, 5 * publish)),
        )


class EpochBook:
    """The books of one run's epochs."""

    def __init__(self, rules: EpochRules, journal: Journal | None = None) -> None:
        self.rules = rules
        self.journal = journal or Journal()
        self._settled_at: datetime | None = None
        self._partly_until = max(self.journal.open, default=-1)

    @classmethod
    def from_json(cls, text: str, rules: EpochRules) -> "EpochBook":
        """Return the books as they were kept.

        Raises:
            ValueError: not a journal of this version.
        """
        return cls(rules, Journal.model_validate_json(text))

    def to_json(self) -> str:
        return self.journal.model_dump_json()

    @property
    def pending(self) -> tuple[EpochReport, ...]:
        """Reports that the site has not acknowledged, oldest first."""
        return tuple(self.journal.pending)

    def observe(self, record: ProgressRecord) -> None:
        """Take note of a verified progress record."""
        if record.left:
            return
        key, now = record.key_thumbprint, record.received_at
        work = self._work(key, record.epoch, now)
        if work is not None:
            work.recorded = max(work.recorded or 0, record.samples_accumulated)
        mark = PeerMark(
            epoch=record.epoch,
            reported_at=record.reported_at,
            seen_at=now,
            client_mode=record.client_mode,
        )
        self._advance(key, mark, now)

    def observe_metrics(self, key: str, metrics: PeerMetrics, now: datetime) -> None:
        """Take note of the signed metrics of the peer whose RSA key has thumbprint ``key``."""
        if metrics.role is not Role.TRAINER:
            return
        newest = max((item.epoch for item in metrics.recent), default=None)
        for item in metrics.recent:
            work = self._work(key, item.epoch, now) if item.epoch < metrics.epoch else None
            if work is not None:
                work.stated = item.samples
                work.loss = metrics.loss if item.epoch == newest else work.loss
        for epoch in _uncovered(metrics, self.journal.open):
            if key in self.journal.open[epoch].work:
                self.journal.open[epoch].work[key].absent = True
        mark = PeerMark(
            epoch=metrics.epoch,
            reported_at=metrics.taken_at,
            seen_at=now,
            client_mode=metrics.client_mode,
            publishes_metrics=True,
        )
        self._advance(key, mark, now)

    def close(self, now: datetime) -> list[EpochReport]:
        """Return reports of the epochs that are settled by ``now``; they are pending from here."""
        made = []
        for epoch in sorted(self.journal.open):
            entry = self.journal.open[epoch]
            if entry.closed_at is None or not self._is_settled(entry, entry.closed_at, now):
                break
            made.append(self._report(epoch, self.journal.open.pop(epoch), entry.closed_at))
            self.journal.reported = epoch
        self.journal.pending += made
        surplus = max(0, len(self.journal.pending) - MAX_PENDING)
        self.journal.dropped += surplus
        del self.journal.pending[:surplus]
        self._forget(now)
        return made

    def acknowledge(self, epoch: int | None) -> None:
        """The site has everything up to ``epoch``: do not send it again."""
        if epoch is not None:
            self.journal.pending = [r for r in self.journal.pending if r.epoch > epoch]

    def _work(self, key: str, epoch: int, now: datetime) -> Work | None:
        """Return where to write down evidence on ``epoch``; None when that epoch is over."""
        if epoch <= self.journal.reported:
            return None
        if self._settled_at is None:
            self._settled_at = now + self.rules.settle
        if now < self._settled_at:
            self._partly_until = max(self._partly_until, epoch)
        entry = self.journal.open.get(epoch)
        if entry is None:
            over = any(m.epoch > epoch for m in self._leaders(now))
            entry = self.journal.open[epoch] = OpenEpoch(closed_at=now if over else None)
        work = entry.work.setdefault(key, Work())
        mark = self.journal.peers.get(key)
        work.moved_on = work.moved_on or (mark is not None and mark.epoch > epoch)
        return work

    def _leaders(self, now: datetime) -> Iterator[PeerMark]:
        """Peers that set the swarm's epoch: alive, and not behind a firewall."""
        for mark in self.journal.peers.values():
            if not mark.client_mode and mark.seen_at >= now - self.rules.live:
                yield mark

    def _advance(self, key: str, mark: PeerMark, now: datetime) -> None:
        """The peer is where ``mark`` says, unless something newer is known of it."""
        known = self.journal.peers.get(key)
        if known is not None:
            if known.reported_at >= mark.reported_at:
                known.publishes_metrics |= mark.publishes_metrics
                return
            mark.publishes_metrics |= known.publishes_metrics
        self.journal.peers[key] = mark
        for epoch, entry in self.journal.open.items():
            if epoch >= mark.epoch:
                continue
            if key in entry.work:
                entry.work[key].moved_on = True
            if entry.closed_at is None and not mark.client_mode:
                entry.closed_at = now

    def _is_settled(self, entry: OpenEpoch, closed_at: datetime, now: datetime) -> bool:
        if now < closed_at + self.rules.grace:
            return False
        if now >= closed_at + self.rules.patience:
            return True
        return not any(self._is_awaited(key, work, now) for key, work in entry.work.items())

    def _is_awaited(self, key: str, work: Work, now: datetime) -> bool:
        """Whether a peer that is alive has still to say if it took part."""
        mark = self.journal.peers.get(key)
        if mark is None or mark.seen_at < now - self.rules.live or work.stated is not None:
            return False
        return not work.absent if mark.publishes_metrics else not work.moved_on

    def _report(self, epoch: int, entry: OpenEpoch, closed_at: datetime) -> EpochReport:
        partly = epoch <= self._partly_until
        counted = {k: (w.samples(partly_watched=partly), w) for k, w in entry.work.items()}
        work = [
            EpochWork(key_thumbprint=key, samples=samples, recorded=None if partly else w.recorded)
            for key, (samples, w) in sorted(counted.items())
            if samples > 0
        ]
        discarded = [
            EpochWork(key_thumbprint=key, samples=w.discarded, recorded=w.recorded)
            for key, w in sorted(entry.work.items())
            if w.discarded
        ]
        losses = [(n, w.loss) for n, w in counted.values() if n > 0 and w.loss is not None]
        total = sum(n for n, _ in losses)
        return EpochReport(
            epoch=epoch,
            finished_at=closed_at,
            loss=sum(n * loss for n, loss in losses) / total if total else None,
            num_peers=len(work),
            work=tuple(work),
            discarded=tuple(discarded),
            accumulated=None if partly else sum(w.recorded or 0 for w in entry.work.values()),
        )

    def _forget(self, now: datetime) -> None:
        """Drop peers that are gone for long, so that the journal does not grow."""
        named = {key for entry in self.journal.open.values() for key in entry.work}
        for key, mark in list(self.journal.peers.items()):
            if mark.seen_at < now - FORGET_AFTER and key not in named:
                del self.journal.peers[key]


def _uncovered(metrics: PeerMetrics, epochs: dict[int, OpenEpoch]) -> list[int]:
    """Return those epochs that the metrics cover but do not name."""
    named = {item.epoch for item in metrics.recent}
    return [epoch for epoch in epochs if epoch not in named and metrics.covers(epoch)]
