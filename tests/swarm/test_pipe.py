"""The pipe into the DHT's process."""

import multiprocessing
import time
from typing import Any

import pytest

from tests.swarm.peers import config_make, dht_peer
from training.swarm.pipe import SharedPipe

WRITERS, MESSAGES = 4, 60
TEXT = "x" * 6000
"""More than what the system writes in one piece, less than what it sends as one message."""
context = multiprocessing.get_context("fork")


def write(pipe: Any, name: int) -> None:
    for number in range(MESSAGES):
        pipe.send((name, number, TEXT))


@pytest.mark.swarm
def test_messages_of_several_processes_come_out_whole_although_the_pipe_is_full() -> None:
    inner, outer = context.Pipe(duplex=False)
    pipe = SharedPipe(outer)
    writers = [context.Process(target=write, args=(pipe, name)) for name in range(WRITERS)]
    for writer in writers:
        writer.start()
    time.sleep(0.5)  # until it is full and all of them wait
    read = [inner.recv() for _ in range(WRITERS * MESSAGES)]
    for writer in writers:
        writer.join(10)
        assert writer.exitcode == 0
    assert {text for _, _, text in read} == {TEXT}
    for name in range(WRITERS):
        assert [number for who, number, _ in read if who == name] == list(range(MESSAGES))


@pytest.mark.swarm
def test_a_writer_that_died_in_the_middle_stops_nobody_for_good(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("training.swarm.pipe._HELD_SECONDS", 0.2)
    inner, outer = context.Pipe(duplex=False)
    pipe = SharedPipe(outer)
    pipe._lock.acquire()
    for number in range(2):
        pipe.send(number)
        assert inner.recv() == number


@pytest.mark.swarm
def test_every_peer_has_it(tmp_path: Any) -> None:
    with dht_peer(tmp_path, config_make()) as peer:
        assert isinstance(peer.dht._outer_pipe, SharedPipe)
