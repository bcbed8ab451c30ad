"""What holds for every order of records, metrics, restarts and acknowledgements."""

from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from tests.coordinator.evidence import RULES, START, key_of, metrics, progress
from training.coordinator.epochs import EpochBook
from training.protocol.metrics import EpochReport

NAMES = ("alice", "bob", "charlie")
names = st.sampled_from(NAMES)
small = st.integers(0, 6)
counts = st.integers(0, 200)
events = st.lists(
    st.one_of(
        st.tuples(st.just("record"), names, small, counts, st.booleans()),
        st.tuples(st.just("metrics"), names, small, st.dictionaries(small, counts, max_size=4)),
        st.tuples(st.just("restart")),
        st.tuples(st.just("acknowledge"), small),
        st.tuples(st.just("wait"), st.integers(1, 60)),
    ),
    max_size=40,
)


def played(happened: list[tuple[object, ...]]) -> tuple[list[EpochReport], EpochBook]:
    """Return all reports that the events give, and the books at the end."""
    book, now, reports = EpochBook(RULES), START, []
    for kind, *rest in happened:
        now += timedelta(milliseconds=100)
        seconds = (now - START).total_seconds()
        if kind == "record":
            name, epoch, samples, client = rest
            book.observe(progress(name, epoch, samples, seconds, client_mode=client))  # type: ignore[arg-type]
        elif kind == "metrics":
            name, epoch, recent = rest
            book.observe_metrics(key_of(name), metrics(epoch, seconds, recent), now)  # type: ignore[arg-type]
        elif kind == "restart":
            book = EpochBook.from_json(book.to_json(), RULES)
        elif kind == "acknowledge":
            book.acknowledge(rest[0])  # type: ignore[arg-type]
        else:
            now += timedelta(seconds=rest[0])  # type: ignore[arg-type]
        reports += book.close(now)
    return reports, book


@given(events)
def test_every_epoch_is_reported_once_and_in_order(happened: list[tuple[object, ...]]) -> None:
    reports, _ = played(happened)
    epochs = [report.epoch for report in reports]
    assert epochs == sorted(set(epochs))


@given(events)
def test_nobody_gets_more_than_was_ever_claimed(happened: list[tuple[object, ...]]) -> None:
    reports, _ = played(happened)
    claims: dict[tuple[str, int], int] = {}
    for kind, *rest in happened:
        if kind == "record":
            pairs = [(rest[1], rest[2])]
        elif kind == "metrics":
            pairs = list(rest[2].items())  # type: ignore[union-attr]
        else:
            continue
        for epoch, samples in pairs:
            place = (key_of(rest[0]), epoch)  # type: ignore[arg-type]
            claims[place] = max(claims.get(place, 0), samples)  # type: ignore[call-overload]
    for report in reports:
        assert report.num_peers == len(report.work) == len({w.key_thumbprint for w in report.work})
        for work in report.work:
            assert 0 < work.samples <= claims[work.key_thumbprint, report.epoch]


@given(events)
def test_what_is_not_acknowledged_is_kept(happened: list[tuple[object, ...]]) -> None:
    reports, book = played(happened)
    last, known = -1, set()
    for kind, *rest in happened:
        if kind == "acknowledge":
            last = max(last, rest[0])  # type: ignore[call-overload]
    for report in book.pending:
        known.add(report.epoch)
    assert {r.epoch for r in reports if r.epoch > last} <= known


@given(events)
def test_the_journal_gives_back_the_same_books(happened: list[tuple[object, ...]]) -> None:
    _, book = played(happened)
    again = EpochBook.from_json(book.to_json(), RULES)
    assert again.journal == book.journal


@given(
    st.dictionaries(st.sampled_from(NAMES), st.lists(counts, min_size=3, max_size=3), min_size=1),
    st.integers(0, 30),
    st.integers(0, 30),
)
def test_a_coordinator_that_is_killed_at_any_time_counts_the_same(
    true_samples: dict[str, list[int]], killed_at: int, away: int
) -> None:
    """Three epochs of ten ticks; what happens while it is away reaches it by metrics alone."""
    book = EpochBook(RULES)
    reports: list[EpochReport] = []

    def now_at(tick: int) -> datetime:
        return START + timedelta(seconds=tick)

    for tick in range(80):
        epoch, phase = min(tick // 10, 3), tick % 10
        if tick == killed_at + away:
            book = EpochBook.from_json(book.to_json(), RULES)
        if killed_at <= tick < killed_at + away:
            continue
        for name, samples in true_samples.items():
            done = samples[epoch] * min(phase + 1, 8) // 8 if epoch < 3 else 0
            book.observe(progress(name, epoch, done, tick))
            recent = dict(enumerate(samples[:epoch]))
            book.observe_metrics(key_of(name), metrics(epoch, tick + 0.5, recent), now_at(tick))
        reports += book.close(now_at(tick))
    assert [r.epoch for r in reports] == [0, 1, 2]
    for report in reports:
        counted = {w.key_thumbprint: w.samples for w in report.work}
        expected = {key_of(n): s[report.epoch] for n, s in true_samples.items()}
        assert counted == {key: samples for key, samples in expected.items() if samples}
