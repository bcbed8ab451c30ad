"""One look at the swarm after another: what was seen goes into the books and into a snapshot."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from training.client.errors import ClientError
from training.client.files import file_write
from training.coordinator.aggregate import SwarmFigures, snapshot_make, swarm_figures
from training.coordinator.epochs import EpochBook, EpochRules
from training.coordinator.observe import SwarmView
from training.coordinator.report import SnapshotMaker
from training.protocol.config import RunConfig
from training.protocol.metrics import SwarmSnapshot
from training.swarm.records import MetricsRecord, ProgressRecord

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Senses:
    """Where observations come from; each call returns soon or raises ``TimeoutError``."""

    progress: Callable[[], Sequence[ProgressRecord]]
    """Verified progress records since the last call."""
    metrics: Callable[[], Sequence[MetricsRecord]]
    """Every peer's newest metrics record."""
    direct: Callable[[], Mapping[str, str]]
    """Address by peer id of the peers that can be called."""
    own_addresses: Sequence[str] = ()


@dataclass(frozen=True)
class Sight:
    """The result of one look."""

    figures: SwarmFigures
    snapshot: SnapshotMaker
    num_finished: int
    """Epochs that were reported for the first time."""
    trouble: Exception | None = None
    """What could not be seen this time; the last good picture stands in for it."""


class Watch:
    """The books and views of one run, and their journal on disk."""

    def __init__(
        self, *, config: RunConfig, senses: Senses, journal: Path, last_epoch: int
    ) -> None:
        self._config, self._senses, self._journal = config, senses, journal
        self._rules = EpochRules.of(config)
        self._view = SwarmView(config)
        self._written = ""
        self.book = self._book_read()
        self.epoch = last_epoch
        """The swarm's newest known epoch."""

    def look(self, now: datetime, *, acknowledged: int | None) -> Sight:
        """Take in what came since the last look; the journal is on disk when this returns.

        Args:
            acknowledged: newest epoch that the site has in its ledger.

        """
        trouble: Exception | None = None
        for record in self._senses.progress():
            self._view.take_progress(record)
            self.book.observe(record)
        try:
            for seen in self._view.take_metrics(self._senses.metrics(), now):
                if seen.metrics is not None:
                    self.book.observe_metrics(seen.record.thumbprint, seen.metrics, now)
        except TimeoutError:
            trouble = TimeoutError("the swarm's metrics could not be read in time")
        self.book.acknowledge(acknowledged)
        finished = self.book.close(now)
        # First the disk, then the site: a report must not change once it was sent.
        self._journal_write()
        return self._sight(now, num_finished=len(finished), trouble=trouble)

    def _sight(self, now: datetime, *, num_finished: int, trouble: Exception | None) -> Sight:
        direct = self._senses.direct()
        views = self._view.peers(now, direct.keys())
        live = self._rules.live.total_seconds()
        figures = swarm_figures(views, now, last_epoch=self.epoch, metrics_seconds=live)
        self.epoch = figures.epoch
        pending = self.book.pending
        entrances = [*self._senses.own_addresses, *direct.values()]

        def snapshot(seq: int) -> SwarmSnapshot:
            return snapshot_make(
                self._config,
                figures,
                views=views,
                seq=seq,
                now=now,
                pending=pending,
                bootstrap_peers=entrances,
            )

        return Sight(figures, snapshot, num_finished, trouble)

    def _book_read(self) -> EpochBook:
        try:
            return EpochBook.from_json(self._journal.read_text(), self._rules)
        except FileNotFoundError:
            return EpochBook(self._rules)
        except (OSError, ValueError) as error:
            logger.warning(
                "run %s: the journal cannot be used, the metrics fill the gap: %s",
                *(self._config.run, error),
            )
            return EpochBook(self._rules)

    def _journal_write(self) -> None:
        text = self.book.to_json()
        if text != self._written:
            try:
                file_write(self._journal, text.encode())
                self._written = text
            except ClientError as error:
                logger.warning("run %s: %s. %s", self._config.run, error.detail, error.remedy)
