"""Records and metrics as peers would send them, for tests of the counting."""

import hashlib
from datetime import UTC, datetime, timedelta

from training.coordinator.epochs import EpochBook, EpochRules
from training.protocol.metrics import EpochReport, EpochSamples, PeerMetrics
from training.protocol.states import Role
from training.swarm.records import ProgressRecord

START = datetime(2030, 1, 1, tzinfo=UTC)
RULES = EpochRules(
    grace=timedelta(seconds=7),
    patience=timedelta(seconds=37),
    live=timedelta(seconds=10),
    settle=timedelta(seconds=10),
)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def key_of(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()


def progress(
    name: str, epoch: int, samples: int, seconds: float, *, client_mode: bool = False
) -> ProgressRecord:
    return ProgressRecord(
        key_thumbprint=key_of(name),
        peer_id=name,
        epoch=epoch,
        samples_accumulated=samples,
        samples_per_second=10.0,
        client_mode=client_mode,
        reported_at=at(seconds),
        received_at=at(seconds),
    )


def left(name: str, seconds: float) -> ProgressRecord:
    return ProgressRecord(key_of(name), "", 0, 0, 0.0, False, at(seconds), at(seconds), left=True)


def metrics(
    epoch: int,
    seconds: float,
    recent: dict[int, int] | None = None,
    *,
    loss: float | None = None,
    client_mode: bool = False,
    role: Role = Role.TRAINER,
) -> PeerMetrics:
    return PeerMetrics(
        run="demo",
        lineage=1,
        peer_id="peer",
        role=role,
        config_version=1,
        epoch=epoch,
        samples_accumulated=0,
        samples_total=0,
        samples_per_second=10.0,
        loss=loss,
        recent=tuple(EpochSamples(epoch=e, samples=n) for e, n in (recent or {}).items()),
        client_mode=client_mode,
        taken_at=at(seconds),
    )


def settled_book() -> EpochBook:
    """Return books that have been open for long: epochs from now on are watched wholly."""
    book = EpochBook(RULES)
    book.observe(progress("warm", 0, 1, -100))
    book.observe(progress("warm", 1, 0, -80))
    book.close(at(-50))
    book.acknowledge(0)
    return book


def work_of(report: EpochReport, *names: str) -> dict[str, int]:
    by_key = {key_of(name): name for name in names}
    return {by_key[w.key_thumbprint]: w.samples for w in report.work if w.key_thumbprint in by_key}
