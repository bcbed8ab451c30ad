"""Where a trainer's time goes."""

import threading
import time
from concurrent.futures import Future
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.protocol.metrics import MAX_TIMINGS, EpochTiming, PeerMetrics
from training.swarm.optimizer import FinishedEpoch
from training.swarm.round_wait import LEAVE_SECONDS, RoundTimes, round_wait
from training.trainer.timing import EpochClock

seconds = st.floats(0, 500)


class Time:
    """A clock that moves when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def finished(epoch: int, size: int = 2, **times: float) -> FinishedEpoch:
    return FinishedEpoch(epoch, 10, size, 1.0, times=RoundTimes(**times))


@given(st.lists(st.tuples(seconds, seconds), max_size=5), seconds, seconds, seconds)
def test_the_parts_add_up_to_the_epoch_without_its_pauses(
    steps: list[tuple[float, float]], pause: float, matchmaking: float, averaging: float
) -> None:
    now = Time()
    clock = EpochClock(now)
    for computing, between in steps:
        with clock.computing():
            now.now += computing
        now.now += between
    with clock.pausing():
        now.now += pause
    now.now += matchmaking + averaging
    timing = clock.epoch_end(finished(3, matchmaking=matchmaking, averaging=averaging))
    assert timing.computing == pytest.approx(sum(c for c, _ in steps), abs=0.06)
    assert timing.waiting == pytest.approx(sum(b for _, b in steps), abs=0.06)
    assert (timing.epoch, timing.averaged) == (3, True)


def test_the_next_epoch_begins_anew_and_a_failed_round_is_told() -> None:
    now = Time()
    clock = EpochClock(now)
    with clock.computing():
        now.now += 5
    clock.epoch_end(finished(1))
    now.now += 2
    timing = clock.epoch_end(finished(2, size=0))
    assert (timing.computing, timing.waiting, timing.averaged) == (0.0, 2.0, False)


def test_a_step_that_fails_is_still_counted() -> None:
    now = Time()
    clock = EpochClock(now)
    step = clock.computing()
    step.__enter__()
    now.now += 4
    assert not step.__exit__(ValueError, ValueError("bad"), None), "the error goes on"
    assert clock.epoch_end(finished(1)).computing == 4.0


class Control(Future[Any]):
    """As hivemind's: a future that knows whether the exchange began."""

    began_allreduce = False


def later(wait: float, call: Any) -> None:
    threading.Timer(wait, call).start()


def test_a_round_is_split_where_its_exchange_begins() -> None:
    control, times = Control(), RoundTimes()
    later(0.3, lambda: setattr(control, "began_allreduce", True))
    later(0.9, lambda: control.set_result({"a": 1}))
    group = round_wait(control, timeout=5.0, leaving=threading.Event(), times=times)
    assert group == {"a": 1}
    assert times.matchmaking == pytest.approx(0.3, abs=0.2)
    assert times.averaging == pytest.approx(0.6, abs=0.3)


def test_a_round_that_never_comes_counts_as_matchmaking() -> None:
    times = RoundTimes()
    with pytest.raises(TimeoutError):
        round_wait(Control(), timeout=0.3, leaving=threading.Event(), times=times)
    assert times.matchmaking >= 0.3
    assert times.averaging == 0.0


def test_who_leaves_does_not_wait_for_the_whole_timeout() -> None:
    leaving, began = threading.Event(), time.monotonic()
    leaving.set()
    with pytest.raises(TimeoutError):
        round_wait(Control(), timeout=60.0, leaving=leaving, times=RoundTimes())
    assert time.monotonic() - began < LEAVE_SECONDS + 3


def metrics(**fields: Any) -> dict[str, Any]:
    given: dict[str, Any] = {
        "run": "demo", "lineage": 1, "peer_id": "Qm", "config_version": 1, "epoch": 1,
        "samples_accumulated": 1, "samples_total": 1, "samples_per_second": 1.0,
        "taken_at": "2026-01-01T00:00:00Z",
    }  # fmt: skip
    return given | fields


def test_a_report_without_timings_is_as_valid_as_before() -> None:
    assert PeerMetrics.model_validate(metrics()).timings == ()


@pytest.mark.parametrize("place", range(6))
@pytest.mark.parametrize("value", [-1.0, 1e12, float("nan"), float("inf"), "much"])
def test_timings_are_bounded(place: int, value: float) -> None:
    good: list[Any] = [1, 1.0, 1.0, 1.0, 1.0, 2]
    (read,) = PeerMetrics.model_validate(metrics(timings=[good])).timings
    assert (read.epoch, read.waiting, read.averaged) == (1, 1.0, True)
    with pytest.raises(ValueError, match="timings"):
        PeerMetrics.model_validate(metrics(timings=[[*good[:place], value, *good[place + 1 :]]]))
    PeerMetrics.model_validate(metrics(timings=[good] * MAX_TIMINGS))
    with pytest.raises(ValueError, match="timings"):
        PeerMetrics.model_validate(metrics(timings=[good] * (MAX_TIMINGS + 1)))


def test_a_timing_is_a_short_list_in_json() -> None:
    report = PeerMetrics.model_validate(metrics(timings=[EpochTiming(7, 1.5, 0.2, 3.0, 0.1, 2)]))
    assert '"timings":[[7,1.5,0.2,3.0,0.1,2]]' in report.model_dump_json()
    assert PeerMetrics.model_validate_json(report.model_dump_json()) == report
