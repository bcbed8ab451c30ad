"""One round's reducer and container, without a network: what they refuse, and that none waits."""

import asyncio
import math
from typing import Any

import pytest
import torch
from hivemind.averaging.partition import AllreduceException
from hypothesis import given, settings
from hypothesis import strategies as st

from training.swarm import robust
from training.swarm.clipping import Limits
from training.swarm.findings import Findings, RoundGuard
from training.swarm.robust import GuardedContainer, GuardedReducer, root_mean_square

LIMITS = Limits(max_weight=1000.0, floor=0.1, reply_ratio=10.0)
SENDERS: Any = ["alice", "bob", "mallory"]


def reducer(findings: Findings, *, parts: int = 2, size: int = 4) -> GuardedReducer:
    return GuardedReducer(
        [torch.Size([size])] * parts,
        SENDERS,
        limits=LIMITS,
        findings=findings,
        own=0,
        own_size=1.0,
    )


def container(own: torch.Tensor, findings: Findings) -> GuardedContainer:
    """All of one's values are averaged by mallory."""
    return GuardedContainer(
        [own],
        (1.0,),
        part_size_bytes=2**20,
        limits=LIMITS,
        findings=findings,
        peers=SENDERS[2:],
        own_size=root_mean_square([own]),
    )


async def test_all_senders_get_the_same_average_part_by_part() -> None:
    averages = reducer(Findings())
    for part in range(2):
        values = [torch.full((4,), float(sender + part)) for sender in range(3)]
        given = (averages.accumulate_part(i, part, v, weight=2.0) for i, v in enumerate(values))
        got = await asyncio.gather(*given)
        assert all(torch.equal(one, torch.full((4,), 1.0 + part)) for one in got)
    assert averages.finished.is_set()


async def test_a_part_of_another_shape_never_meets_the_average() -> None:
    """A column less a row is a matrix: hivemind would make one that no memory holds."""
    findings = Findings()
    averages = reducer(findings)
    waiting = [asyncio.create_task(averages.accumulate_part(i, 0, torch.ones(4))) for i in range(2)]
    with pytest.raises(AllreduceException, match="another shape"):
        await averages.accumulate_part(2, 0, torch.ones(4, 1))
    averages.on_sender_failed(2)  # as hivemind does with whoever breaks the protocol
    assert torch.equal((await asyncio.gather(*waiting))[0], torch.ones(4))
    assert findings.left_out == {"mallory": 1}


async def test_a_second_stream_of_one_sender_does_not_count_as_another_sender() -> None:
    averages = reducer(Findings())
    waiting = asyncio.create_task(averages.accumulate_part(2, 0, torch.ones(4)))
    await asyncio.sleep(0)
    with pytest.raises(AllreduceException, match="out of turn"):
        await averages.accumulate_part(2, 0, torch.ones(4))
    assert not waiting.done()
    averages.finalize()
    waiting.cancel()


async def test_when_averaging_itself_breaks_nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: Any, **kwargs: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(robust, "robust_mean", broken)
    averages = reducer(Findings(), parts=1)
    given = (averages.accumulate_part(i, 0, torch.ones(4)) for i in range(3))
    got = await asyncio.gather(*given, return_exceptions=True)
    assert all(isinstance(one, ZeroDivisionError) for one in got)


async def test_a_round_without_any_usable_part_ends_with_a_refused_average() -> None:
    averages = reducer(Findings(), parts=1)
    for sender in range(3):
        averages.on_sender_failed(sender)
    assert averages.finished.is_set()


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**31), st.integers(2, 16), st.integers(64, 4000), st.floats(0.0, 3.0))
def test_an_honest_average_is_taken_over(seed: int, peers: int, size: int, signal: float) -> None:
    generator = torch.Generator().manual_seed(seed)
    shared = torch.randn(size, generator=generator) * signal
    parts = [shared + torch.randn(size, generator=generator) for _ in range(peers)]
    change = torch.stack(parts).mean(dim=0) - parts[0]
    assert container(parts[0], Findings())._is_plausible(change, parts[0])


@pytest.mark.parametrize(
    ("lie", "size"),
    [
        (lambda mean: mean * math.nan, 4),
        (lambda mean: mean.clone().index_fill_(0, torch.tensor([1]), math.inf), 2000),
        (lambda mean: mean * 100, 2000),
        (lambda mean: mean * 100, 8),
        (lambda mean: -mean, 500),
        (lambda mean: mean[:-1], 500),
        (lambda mean: mean[:, None], 500),
    ],
)
async def test_an_average_that_cannot_be_right_changes_nothing(lie: Any, size: int) -> None:
    generator = torch.Generator().manual_seed(size)
    shared = torch.randn(size, generator=generator)
    own = shared + torch.randn(size, generator=generator)
    mean = shared + torch.randn(size, generator=generator) / 3
    findings = Findings()
    parts = container(own, findings)
    lied = lie(mean)
    change = lied - own if lied.shape == own.shape else lied
    parts.register_processed_part(0, 0, change)
    (update,) = [tensor async for tensor in parts.iterate_output_tensors()]
    assert torch.equal(update, torch.zeros(size))
    assert findings.refused == {"mallory": 1}


async def test_a_reducer_that_gives_back_more_than_it_was_given_is_an_error() -> None:
    own = torch.ones(100)
    parts = container(own, Findings())
    parts.register_processed_part(0, 0, torch.zeros(100))
    with pytest.raises(IndexError):
        parts.register_processed_part(0, 1, torch.zeros(100))


def test_a_guard_tells_what_it_found_once_and_in_words() -> None:
    guard, findings = RoundGuard(LIMITS), Findings()
    findings.add(findings.left_out, SENDERS[2])
    findings.add(findings.left_out, SENDERS[2])
    findings.add(findings.refused, SENDERS[2])
    guard.note(findings)
    assert guard.taken() == (
        "1 peer sent values that are not finite: left out",
        "1 peer gave back an average that cannot be right: own values kept",
    )
    assert guard.taken() == ()


def test_without_a_guard_the_round_is_hivemind_s_own(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    monkeypatch.setattr(robust, "AllReduceRunner", lambda **_: made.append("plain"))
    monkeypatch.setattr(robust, "GuardedAllReduce", lambda **_: made.append("guarded"))
    robust.runner_make()
    robust.runner_make(guard=RoundGuard(LIMITS))
    assert made == ["plain", "guarded"]
