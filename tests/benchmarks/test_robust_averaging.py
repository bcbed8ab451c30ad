"""Seconds of one averaging round that the guards cost a peer, beside hivemind's plain reducer.

In a round of ``n`` peers each one averages an ``n``-th of the model for all, and takes the rest
back from the others. No network: that is the same for both. Run with ``-m benchmark -s``.
"""

import asyncio
import statistics
import sys
import time
from typing import Any

import pytest
import torch
from hivemind.averaging.partition import TensorPartContainer, TensorPartReducer

from training.swarm.clipping import Limits
from training.swarm.findings import Findings
from training.swarm.robust import GuardedContainer, GuardedReducer, root_mean_square

MODEL = 17_847_296
"""Values of ALBERT-large."""
PART, TURNS = 262_144, 5
"""Values of hivemind's usual part in 16 bits."""
LIMITS = Limits(max_weight=1000.0, floor=0.1, reply_ratio=10.0)


async def reduce_all(reducer: TensorPartReducer, parts: list[list[torch.Tensor]]) -> None:
    for number, values in enumerate(parts):
        await asyncio.gather(
            *(reducer.accumulate_part(i, number, v, weight=50.0) for i, v in enumerate(values))
        )


def reducers(peers: int, shapes: list[torch.Size]) -> dict[str, TensorPartReducer]:
    senders: Any = [str(number) for number in range(peers)]
    guarded: dict[str, Any] = {
        "senders": senders,
        "findings": Findings(),
        "own": 0,
        "own_size": 1.0,
    }
    off = Limits(max_weight=1000.0, floor=0.1, reply_ratio=10.0, is_clipping=False)
    return {
        "plain": TensorPartReducer(tuple(shapes), peers),
        "guard, off": GuardedReducer(shapes, limits=off, **guarded),
        "guard, clip": GuardedReducer(shapes, limits=LIMITS, **guarded),
    }


def containers(own: torch.Tensor) -> dict[str, TensorPartContainer]:
    return {
        "plain": TensorPartContainer([own], (1.0,), part_size_bytes=4 * PART),
        "guard": GuardedContainer(
            [own],
            (1.0,),
            part_size_bytes=4 * PART,
            limits=LIMITS,
            findings=Findings(),
            peers=["bob"],  # type: ignore[list-item]
            own_size=root_mean_square([own]),
        ),
    }


async def reduce_seconds(peers: int) -> dict[str, float]:
    count = max(1, round(MODEL / peers / PART))
    signal = torch.randn(PART)
    parts = [[signal + torch.randn(PART) for _ in range(peers)] for _ in range(count)]
    wall: dict[str, list[float]] = {}
    for _ in range(TURNS):
        for name, reducer in reducers(peers, [torch.Size([PART])] * count).items():
            started = time.perf_counter()
            await reduce_all(reducer, parts)
            wall.setdefault(name, []).append(time.perf_counter() - started)
    return {name: statistics.median(times) for name, times in wall.items()}


def take_seconds() -> dict[str, float]:
    own = torch.randn(MODEL)
    changes = torch.randn(MODEL).split(PART)
    wall: dict[str, list[float]] = {}
    for _ in range(TURNS):
        for name, container in containers(own).items():
            started = time.perf_counter()
            for number, change in enumerate(changes):
                container.register_processed_part(0, number, change)
            wall.setdefault(name, []).append(time.perf_counter() - started)
            container.finalize()
    return {name: statistics.median(times) for name, times in wall.items()}


@pytest.mark.benchmark
@pytest.mark.timeout(600)
def test_cost_of_guarded_averaging_per_round(capsys: pytest.CaptureFixture[str]) -> None:
    torch.set_num_threads(1)
    lines = ["", f"{MODEL / 1e6:.1f} M values, one thread, seconds a round, median of {TURNS}"]
    for peers in (4, 8, 16):
        cells = "".join(
            f"  {name} {took:.3f}" for name, took in asyncio.run(reduce_seconds(peers)).items()
        )
        lines.append(f"averaging a share, {peers:2} peers:{cells}")
    cells = "".join(f"  {name} {took:.3f}" for name, took in take_seconds().items())
    lines.append(f"taking averages over:       {cells}")
    with capsys.disabled():
        sys.stdout.write("\n".join(lines) + "\n")
    assert len(lines) == 6
