"""The counting rule, case by case."""

from datetime import timedelta

import pytest

from tests.coordinator.evidence import (
    RULES,
    at,
    key_of,
    left,
    metrics,
    progress,
    settled_book,
    work_of,
)
from training.coordinator.epochs import MAX_PENDING, EpochBook, EpochRules
from training.protocol.config import RunConfig, SwarmConfig, TaskConfig
from training.protocol.states import Role


def test_both_trainers_are_counted_with_their_largest_record() -> None:
    book = settled_book()
    for seconds, samples in ((0, 32), (1, 64), (2, 96)):
        book.observe(progress("alice", 1, samples, seconds))
        book.observe(progress("bob", 1, samples // 2, seconds))
    book.observe(progress("alice", 2, 0, 5))
    book.observe(progress("bob", 2, 0, 6))
    assert book.close(at(11)) == []
    (report,) = book.close(at(12))
    assert (report.epoch, report.finished_at, report.num_peers) == (1, at(5), 2)
    assert work_of(report, "alice", "bob") == {"alice": 96, "bob": 48}
    assert book.pending == (report,)


def test_an_epoch_stays_open_until_somebody_shows_the_next() -> None:
    book = settled_book()
    book.observe(progress("alice", 1, 96, 0))
    assert book.close(at(1000)) == []


def test_a_peer_in_client_mode_does_not_close_an_epoch() -> None:
    book = settled_book()
    book.observe(progress("alice", 1, 96, 0))
    book.observe(progress("bob", 1, 32, 0, client_mode=True))
    book.observe(progress("bob", 2, 0, 1, client_mode=True))
    assert book.close(at(1000)) == []
    book.observe(progress("alice", 2, 0, 1001))
    (report,) = book.close(at(1010))
    assert work_of(report, "alice", "bob") == {"alice": 96, "bob": 32}


def test_a_peer_killed_in_mid_epoch_is_not_counted() -> None:
    book = settled_book()
    book.observe(progress("alice", 1, 96, 0))
    book.observe(progress("bob", 1, 32, -5))
    book.observe(progress("alice", 2, 0, 5))
    (report,) = book.close(at(12))
    assert work_of(report, "alice", "bob") == {"alice": 96}


def test_a_live_peer_that_is_slow_to_finish_is_waited_for() -> None:
    book = settled_book()
    book.observe(progress("alice", 1, 96, 0))
    book.observe(progress("bob", 1, 32, 6))
    book.observe(progress("alice", 2, 0, 5))
    assert book.close(at(13)) == []
    book.observe(progress("bob", 2, 0, 14))
    (report,) = book.close(at(14))
    assert work_of(report, "alice", "bob") == {"alice": 96, "bob": 32}


def test_a_peer_that_never_finishes_is_waited_for_only_so_long() -> None:
    book = settled_book()
    book.observe(progress("alice", 1, 96, 0))
    book.observe(progress("alice", 2, 0, 5))
    for seconds in range(0, 42, 3):
        book.observe(progress("bob", 1, 32, seconds))
    assert book.close(at(41)) == []
    (report,) = book.close(at(42))
    assert work_of(report, "alice", "bob") == {"alice": 96}


def test_a_late_joiner_counts_from_its_first_epoch() -> None:
    book = settled_book()
    book.observe(progress("alice", 1, 96, 0))
    book.observe(progress("alice", 2, 0, 5))
    book.observe(progress("bob", 2, 16, 6))
    (first,) = book.close(at(12))
    assert work_of(first, "alice", "bob") == {"alice": 96}
    book.observe(progress("alice", 2, 64, 14))
    book.observe(progress("alice", 3, 0, 15))
    book.observe(progress("bob", 3, 0, 15))
    (second,) = book.close(at(22))
    assert work_of(second, "alice", "bob") == {"alice": 64, "bob": 16}


@pytest.mark.parametrize("recent", [{1: 0}, {0: 5}, {}])
def test_samples_that_a_resynchronised_peer_threw_away_do_not_count(
    recent: dict[int, int],
) -> None:
    book = settled_book()
    book.observe(progress("alice", 1, 96, 0))
    book.observe(progress("bob", 1, 500, 0))
    book.observe(progress("alice", 2, 0, 5))
    book.observe(progress("bob", 2, 0, 6))
    book.observe_metrics(key_of("bob"), metrics(2, 7, recent), at(7))
    (report,) = book.close(at(12))
    assert work_of(report, "alice", "bob") == {"alice": 96}


@pytest.mark.parametrize(("stated", "counted"), [(60, 60), (96, 96), (1000, 96)])
def test_signed_metrics_can_lower_a_record_and_never_raise_it(stated: int, counted: int) -> None:
    book = settled_book()
    book.observe(progress("alice", 1, 96, 0))
    book.observe(progress("alice", 2, 0, 5))
    book.observe_metrics(key_of("alice"), metrics(2, 6, {1: stated}), at(6))
    (report,) = book.close(at(12))
    assert work_of(report, "alice") == {"alice": counted}


def test_a_peer_that_signs_metrics_is_waited_for_until_they_tell_of_the_epoch() -> None:
    book = settled_book()
    book.observe_metrics(key_of("alice"), metrics(1, 0), at(0))
    book.observe(progress("alice", 1, 96, 1))
    for seconds in (5, 9, 13):
        book.observe(progress("alice", 2, seconds, seconds))
    assert book.close(at(13)) == []
    book.observe_metrics(key_of("alice"), metrics(2, 12, {1: 64}), at(14))
    (report,) = book.close(at(14))
    assert work_of(report, "alice") == {"alice": 64}


def test_what_a_peer_stated_outlives_its_restart() -> None:
    book = settled_book()
    book.observe(progress("alice", 1, 96, 0))
    book.observe_metrics(key_of("alice"), metrics(2, 5, {1: 96}), at(5))
    book.observe_metrics(key_of("alice"), metrics(2, 9), at(9))
    (report,) = book.close(at(12))
    assert work_of(report, "alice") == {"alice": 96}


def test_epochs_missed_while_away_are_taken_from_the_metrics_alone() -> None:
    book = settled_book()
    book.observe(progress("alice", 1, 10, 0))
    book = EpochBook.from_json(book.to_json(), RULES)
    for name, samples in (("alice", 50), ("bob", 70)):
        recent = {epoch: samples + epoch for epoch in range(1, 6)}
        book.observe_metrics(key_of(name), metrics(6, 100, recent), at(100))
    assert book.close(at(106)) == []
    reports = book.close(at(107))
    assert [r.epoch for r in reports] == [1, 2, 3, 4, 5]
    assert [work_of(r, "alice", "bob") for r in reports] == [
        {"alice": 50 + epoch, "bob": 70 + epoch} for epoch in range(1, 6)
    ]


def test_a_record_seen_only_in_part_is_completed_by_the_metrics() -> None:
    book = settled_book()
    book.observe(progress("alice", 1, 96, 0))
    book = EpochBook.from_json(book.to_json(), RULES)
    book.observe(progress("alice", 2, 8, 20))
    book.observe(progress("alice", 3, 0, 25))
    book.observe_metrics(key_of("alice"), metrics(3, 26, {1: 200, 2: 300}), at(26))
    reports = book.close(at(40))
    assert [work_of(r, "alice") for r in reports] == [{"alice": 200}, {"alice": 300}]


def test_repeated_and_older_records_change_nothing() -> None:
    book = settled_book()
    records = [progress("alice", 1, n, n / 32) for n in (32, 64, 96)]
    for record in [*records, *reversed(records), records[0]]:
        book.observe(record)
    book.observe(progress("alice", 2, 0, 5))
    for record in records:
        book.observe(record)
    (report,) = book.close(at(12))
    assert work_of(report, "alice") == {"alice": 96}
    book.observe(progress("alice", 1, 5000, 13))
    book.observe_metrics(key_of("alice"), metrics(2, 13, {1: 5000}), at(13))
    assert book.close(at(60)) == []


def test_a_replayed_record_does_not_bring_a_dead_peer_to_life() -> None:
    book = settled_book()
    old = progress("bob", 1, 32, 0)
    book.observe(old)
    book.observe(progress("alice", 1, 96, 0))
    book.observe(progress("alice", 2, 0, 5))
    for _ in range(10):
        book.observe(old)
    (report,) = book.close(at(12))
    assert work_of(report, "alice", "bob") == {"alice": 96}


def test_evidence_that_comes_after_the_next_epoch_began_still_counts() -> None:
    book = settled_book()
    book.observe(progress("bob", 1, 8, 0))
    book.observe(progress("alice", 2, 0, 5))
    book.observe(progress("alice", 1, 96, 4))
    book.observe_metrics(key_of("charlie"), metrics(2, 6, {1: 40}), at(6))
    (report,) = book.close(at(12))
    assert work_of(report, "alice", "bob", "charlie") == {"alice": 96, "charlie": 40}


def test_no_epoch_is_reported_before_an_older_one() -> None:
    book = settled_book()
    book.observe(progress("alice", 1, 96, 0))
    book.observe(progress("bob", 1, 32, 0))
    book.observe(progress("alice", 2, 64, 5))
    book.observe(progress("alice", 3, 0, 6))
    for seconds in range(0, 14):
        book.observe(progress("bob", 1, 32, seconds))
    assert book.close(at(14)) == []
    book.observe(progress("bob", 2, 16, 15))
    assert [r.epoch for r in book.close(at(15))] == [1]


def test_the_loss_of_an_epoch_is_weighted_by_samples() -> None:
    book = settled_book()
    book.observe_metrics(key_of("alice"), metrics(2, 5, {0: 1, 1: 300}, loss=2.0), at(5))
    book.observe_metrics(key_of("bob"), metrics(2, 5, {1: 100}, loss=6.0), at(5))
    book.observe_metrics(key_of("charlie"), metrics(2, 5, {1: 50}), at(5))
    (report,) = book.close(at(12))
    assert report.loss == pytest.approx(3.0)
    assert report.num_peers == 3


def test_a_full_list_of_recent_epochs_says_nothing_of_older_ones() -> None:
    book = settled_book()
    book.observe(progress("alice", 1, 96, 0))
    recent = dict.fromkeys(range(3, 35), 10)
    book.observe_metrics(key_of("alice"), metrics(35, 5, recent), at(5))
    reports = book.close(at(16))
    assert work_of(reports[0], "alice") == {"alice": 96}
    assert reports[0].epoch == 1


def test_metrics_of_the_present_epoch_and_of_other_roles_are_no_claims() -> None:
    book = settled_book()
    book.observe(progress("alice", 2, 0, 0))
    book.observe_metrics(key_of("bob"), metrics(1, 1, {1: 99, 5: 99}), at(1))
    for role in (Role.COORDINATOR, Role.AUXILIARY):
        book.observe_metrics(key_of("charlie"), metrics(2, 1, {1: 99}, role=role), at(1))
    assert [r.work for r in book.close(at(50))] == [()]


def test_the_record_of_leaving_is_no_progress() -> None:
    book = settled_book()
    book.observe(progress("alice", 1, 96, 0))
    book.observe(left("alice", 1))
    assert book.close(at(60)) == []


def test_reports_wait_until_they_are_acknowledged() -> None:
    book = settled_book()
    for epoch in range(1, 6):
        book.observe(progress("alice", epoch, 10, epoch * 20))
        book.close(at(epoch * 20 + 19))
    assert [r.epoch for r in book.pending] == [1, 2, 3, 4]
    book.acknowledge(None)
    book.acknowledge(2)
    assert [r.epoch for r in book.pending] == [3, 4]
    book = EpochBook.from_json(book.to_json(), RULES)
    assert [r.epoch for r in book.pending] == [3, 4]


def test_at_most_a_thousand_reports_wait() -> None:
    book = settled_book()
    for epoch in range(1, MAX_PENDING + 4):
        book.observe(progress("alice", epoch, 10, epoch * 20))
        book.close(at(epoch * 20 + 19))
    assert len(book.pending) == MAX_PENDING
    assert book.journal.dropped == 2
    assert book.pending[-1].epoch == MAX_PENDING + 2


def test_books_of_another_kind_are_refused() -> None:
    with pytest.raises(ValueError):
        EpochBook.from_json('{"version": 2}', RULES)


def test_peers_that_are_long_gone_are_forgotten() -> None:
    book = settled_book()
    book.observe(progress("bob", 1, 5, 0))
    book.observe(progress("alice", 2, 5, 0))
    book.close(at(100))
    assert set(book.journal.peers) == {key_of("warm"), key_of("bob"), key_of("alice")}
    book.close(at(1000))
    assert set(book.journal.peers) == {key_of("alice")}


def test_the_times_of_the_rule_follow_the_run() -> None:
    config = RunConfig(
        run="demo",
        title="Demo",
        version=1,
        task=TaskConfig(name="tiny"),
        swarm=SwarmConfig(matchmaking_seconds=5, averaging_timeout_seconds=30),
    )
    rules = EpochRules.of(config)
    assert (rules.grace, rules.patience) == (timedelta(seconds=7), timedelta(seconds=37))


def test_a_report_names_records_discarded_work_and_the_whole_that_was_accumulated() -> None:
    book = settled_book()
    book.observe(progress("alice", 1, 96, 0))
    book.observe(progress("bob", 1, 500, 0))
    book.observe(progress("charlie", 1, 4, -5))
    book.observe(progress("alice", 2, 0, 5))
    book.observe(progress("bob", 2, 0, 6))
    book.observe_metrics(key_of("alice"), metrics(2, 6, {1: 80}), at(6))
    book.observe_metrics(key_of("bob"), metrics(2, 7), at(7))
    (report,) = book.close(at(12))
    assert [(w.samples, w.recorded) for w in report.work] == [(80, 96)]
    assert [(w.key_thumbprint, w.samples) for w in report.discarded] == [(key_of("bob"), 500)]
    assert report.accumulated == 600


def test_an_epoch_that_was_partly_watched_tells_no_records() -> None:
    book = EpochBook(RULES)
    book.observe(progress("alice", 1, 96, 0))
    book.observe_metrics(key_of("alice"), metrics(2, 1, {1: 120}), at(1))
    (report,) = book.close(at(20))
    assert [(w.samples, w.recorded) for w in report.work] == [(120, None)]
    assert (report.accumulated, report.discarded) == (None, ())
