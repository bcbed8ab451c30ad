"""What a state must be like, and who is asked for one; without a network."""

import asyncio
import math
from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.swarm import download
from training.swarm.download import StateOffer, state_download
from training.swarm.state_files import StateError, StateShapeError
from training.swarm.state_take import KnownState, norm_check, state_fetch

NORMS = st.floats(1e-3, 1e6)


@given(NORMS, st.integers(0, 10_000), st.floats(0.5, 2.0))
def test_a_norm_near_the_usual_one_is_taken_whatever_is_known(
    norm: float, epoch: int, ratio: float
) -> None:
    known = KnownState(epoch, norm)
    for measure in (None, known):
        norm_check(norm * ratio, epoch=epoch + 1, own=known, known=measure)


@given(NORMS, st.sampled_from([math.nan, math.inf, 0.0, 1e-9, 1e12]), st.booleans())
def test_a_norm_of_another_size_is_refused_even_by_a_newcomer(
    norm: float, odd: float, is_known: bool
) -> None:
    own = KnownState(0, norm)
    known = KnownState(7, norm) if is_known else None
    with pytest.raises(StateError, match="norm of its parameters"):
        norm_check(odd, epoch=8, own=own, known=known)


def test_the_nearer_the_checkpoint_the_narrower_the_band() -> None:
    own, known = KnownState(0, 1.0), KnownState(100, 10.0)
    norm_check(25.0, epoch=120, own=own, known=known)
    norm_check(90.0, epoch=900, own=own, known=known)
    with pytest.raises(StateError):
        norm_check(90.0, epoch=120, own=own, known=known)
    # A trainer that is past the checkpoint goes by what it has itself.
    with pytest.raises(StateError):
        norm_check(90.0, epoch=900, own=KnownState(800, 1.0), known=known)


class Averager:
    """Answers with one offer after the other, each of which is refused."""

    prefix = "tiny"

    def __init__(self, offers: list[str]) -> None:
        self.offers, self.asked = offers, 0

    def state_ask(self, *, avoid: list[str], min_epoch: int, timeout: float) -> Any:
        self.asked += 1
        assert len(avoid) == len(set(avoid))
        left = [name for name in self.offers if name not in avoid]
        return StateOffer(left[0], {}, []) if left else None


@pytest.mark.parametrize(
    ("number", "known", "error"),
    [
        (1, None, StateShapeError),
        (9, KnownState(1, 1.0), StateShapeError),
        (9, KnownState(1, 1.0, has_schema=True), StateError),
    ],
)
def test_no_more_than_four_bad_states_are_asked_for(
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    known: KnownState | None,
    error: type[StateError],
) -> None:
    def refuse(*args: Any, **kwargs: Any) -> None:
        raise StateShapeError("of another model")

    monkeypatch.setattr("training.swarm.state_take.state_take", refuse)
    averager = Averager([str(number) for number in range(number)])
    with pytest.raises(StateError) as caught:
        state_fetch(averager, min_epoch=0, known=known, timeout=1)
    assert type(caught.value) is error
    assert averager.asked == min(number + 1, 4)


async def test_who_never_ends_is_asked_last_the_next_time(monkeypatch: pytest.MonkeyPatch) -> None:
    slow, alice = (Name(name) for name in ("slow", "alice"))
    asked: list[str] = []

    async def donors(averager: Any) -> list[Any]:
        return [slow, alice]

    async def answer(averager: Any, peer: Any, *limits: int) -> StateOffer:
        asked.append(peer)
        if peer == slow:
            await asyncio.sleep(60)
        return StateOffer(peer, {"epoch": 3}, [])

    monkeypatch.setattr(download, "_donors", donors)
    monkeypatch.setattr(download, "_download", answer)
    failed: Counter[Any] = Counter({Name("long gone"): 3})
    averager: Any = SimpleNamespace(peer_id="bob", prefix="tiny")

    async def attempt() -> StateOffer | None:
        coroutine = state_download(averager, avoid=(), min_epoch=0, max_bytes=100, failed=failed)
        return await asyncio.wait_for(coroutine, 0.05)

    with pytest.raises(TimeoutError):
        await attempt()
    assert failed == {"slow": 1}
    offer = await attempt()
    assert offer is not None
    assert offer.peer == "alice"
    assert asked == ["slow", "alice"]


class Name(str):
    """Stands for a peer id."""

    def to_base58(self) -> str:
        return str(self)
