"""Sending snapshots to a site that is sometimes not there."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel

from tests.coordinator.evidence import START
from training.client.errors import UNREACHABLE, PlatformError
from training.coordinator.report import LONGEST_WAIT, Reporter, SnapshotNumber, wait_seconds
from training.protocol.api import SnapshotRequest, SnapshotResponse
from training.protocol.metrics import SwarmSnapshot
from training.protocol.names import TYP_SNAPSHOT


def snapshot_maker(epoch: int):  # type: ignore[no-untyped-def]
    def make(seq: int) -> SwarmSnapshot:
        return SwarmSnapshot(
            run="demo",
            lineage=1,
            seq=seq,
            taken_at=START,
            epoch=epoch,
            samples_accumulated=0,
            samples_per_second=0.0,
        )

    return make


def signed(body: BaseModel, typ: str) -> str:
    assert typ == TYP_SNAPSHOT
    return body.model_dump_json()


class Site:
    """Takes snapshots with growing numbers; can be down, and can be slow."""

    def __init__(self) -> None:
        self.got: list[SwarmSnapshot] = []
        self.last_seq, self.is_down = 0, False
        self.gate = threading.Event()
        self.gate.set()

    def post(self, request: SnapshotRequest) -> SnapshotResponse:
        self.gate.wait(5)
        if self.is_down:
            raise PlatformError(UNREACHABLE, "no answer", "Wait.", status=0)
        snapshot = SwarmSnapshot.model_validate_json(request.snapshot)
        accepted = snapshot.seq > self.last_seq
        if accepted:
            self.got.append(snapshot)
            self.last_seq = snapshot.seq
        return SnapshotResponse(accepted=accepted, last_seq=self.last_seq, last_epoch=3)


@pytest.fixture
def site() -> Site:
    return Site()


@pytest.fixture
def reporter(site: Site, tmp_path: Path) -> Iterator[Reporter]:
    number = SnapshotNumber(tmp_path / "number.json")
    reporter = Reporter(sign=signed, post=site.post, number=number)
    reporter.start()
    yield reporter
    site.gate.set()
    reporter.stop()


def test_a_snapshot_arrives_numbered_and_its_answer_is_kept(site: Site, reporter: Reporter) -> None:
    reporter.offer(snapshot_maker(5))
    assert reporter.flush(5)
    assert [(s.seq, s.epoch) for s in site.got] == [(1, 5)]
    assert reporter.response is not None
    assert reporter.response.last_epoch == 3


def test_offering_never_waits_and_the_newest_wins(site: Site, reporter: Reporter) -> None:
    site.gate.clear()
    began = time.monotonic()
    for epoch in range(1000):
        reporter.offer(snapshot_maker(epoch))
    assert time.monotonic() - began < 1
    site.gate.set()
    assert reporter.flush(5)
    assert site.got[-1].epoch == 999
    assert len(site.got) <= 2


def test_a_site_that_comes_back_gets_the_newest(site: Site, reporter: Reporter) -> None:
    site.is_down = True
    for epoch in range(3):
        reporter.offer(snapshot_maker(epoch))
        assert not reporter.flush(0.1)
    assert isinstance(reporter.error, PlatformError)
    site.is_down = False
    assert reporter.flush(5)
    assert [s.epoch for s in site.got] == [2]
    assert reporter.error is None


def test_numbers_grow_over_restarts(tmp_path: Path, site: Site) -> None:
    for _ in range(3):
        number = SnapshotNumber(tmp_path / "number.json")
        assert Reporter(sign=signed, post=site.post, number=number).send(snapshot_maker(0))
    assert [s.seq for s in site.got] == [1, 2, 3]


@pytest.mark.parametrize("content", [None, b"{broken", b"[]"])
def test_a_lost_number_is_learned_from_the_site(
    tmp_path: Path, site: Site, content: bytes | None
) -> None:
    site.last_seq = 41
    if content is not None:
        (tmp_path / "number.json").write_bytes(content)
    reporter = Reporter(
        sign=signed, post=site.post, number=SnapshotNumber(tmp_path / "number.json")
    )
    assert not reporter.send(snapshot_maker(0))
    assert reporter.send(snapshot_maker(0))
    assert [s.seq for s in site.got] == [42]


def test_an_error_of_any_kind_is_kept_and_not_raised(tmp_path: Path) -> None:
    def post(_request: SnapshotRequest) -> SnapshotResponse:
        raise RuntimeError("a bug")

    reporter = Reporter(sign=signed, post=post, number=SnapshotNumber(tmp_path / "number.json"))
    assert not reporter.send(snapshot_maker(0))
    assert str(reporter.error) == "a bug"


def test_waits_grow_to_half_a_minute_with_jitter() -> None:
    assert [wait_seconds(n, 1.0) for n in range(4)] == [1, 2, 4, 8]
    assert wait_seconds(50, 1.0) == LONGEST_WAIT
    assert wait_seconds(2, 0.0) == 2
