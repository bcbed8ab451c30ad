"""One slot, the newest wins, and nobody waits."""

import logging
import threading
import time
from collections.abc import Callable
from itertools import pairwise

import pytest

from training.trainer.publisher import Publisher


def wait_for(is_so: Callable[[], object]) -> None:
    end = time.monotonic() + 5
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_an_offer_is_sent() -> None:
    sent: list[int] = []
    publisher = Publisher(sent.append, seconds=0.01)
    publisher.start()
    publisher.offer(1)
    wait_for(lambda: sent == [1])
    publisher.offer(2)
    wait_for(lambda: sent == [1, 2])
    publisher.stop(timeout=5)


def test_offers_during_a_slow_send_collapse_to_the_newest() -> None:
    sent: list[int] = []
    gate = threading.Event()

    def slow(item: int) -> None:
        gate.wait(5)
        sent.append(item)

    publisher = Publisher(slow, seconds=0.01)
    publisher.start()
    publisher.offer(0)
    wait_for(lambda: publisher._slot is None)
    started = time.perf_counter()
    for item in range(1, 100):
        publisher.offer(item)
    assert time.perf_counter() - started < 0.5
    gate.set()
    wait_for(lambda: 99 in sent)
    assert sent == [0, 99]
    publisher.stop(timeout=5)


def test_sends_keep_their_distance() -> None:
    times: list[float] = []
    publisher = Publisher(lambda _: times.append(time.monotonic()), seconds=0.2)
    publisher.start()
    for item in range(50):
        publisher.offer(item)
        time.sleep(0.01)
    publisher.stop(timeout=5)
    gaps = [after - before for before, after in pairwise(times[:-1])]
    assert min(gaps, default=1.0) > 0.15
    assert len(times) <= 6


def test_stopping_sends_the_last_offer() -> None:
    sent: list[int] = []
    publisher = Publisher(sent.append, seconds=60)
    publisher.start()
    publisher.offer(1)
    wait_for(lambda: sent == [1])
    publisher.offer(2)
    publisher.stop(timeout=5)
    assert sent == [1, 2]


def test_a_send_that_never_returns_does_not_hold_up_the_stop() -> None:
    publisher = Publisher(lambda _: threading.Event().wait(30), seconds=0.01)
    publisher.start()
    publisher.offer(1)
    started = time.monotonic()
    publisher.stop(timeout=0.2)
    assert time.monotonic() - started < 2


def test_failures_are_logged_once_and_the_next_offer_is_tried(
    caplog: pytest.LogCaptureFixture,
) -> None:
    sent: list[int] = []

    def fail_twice(item: int) -> None:
        if item < 3:
            raise OSError("the daemon is away")
        sent.append(item)

    publisher = Publisher(fail_twice, seconds=0.01)
    with caplog.at_level(logging.WARNING):
        publisher.start()
        for item in (1, 2, 3):
            publisher.offer(item)
            wait_for(lambda: publisher._slot is None)
            time.sleep(0.05)
        wait_for(lambda: sent == [3])
    publisher.stop(timeout=5)
    assert [record.message for record in caplog.records] == [
        "metrics are not published: OSError: the daemon is away"
    ]
