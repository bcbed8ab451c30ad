"""Patches lead from any state to any other."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from training.protocol.api import LivePeer
from training.protocol.states import LiveState, PeerState, Reach, RunState
from web.monitoring.livestate import (
    Figures,
    RunFacts,
    live_run_build,
    peer_moves,
    peers_merge,
    state_apply,
    state_diff,
)

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
instants = st.integers(0, 3000).map(lambda s: NOW - timedelta(seconds=s))
live_peers = st.builds(
    LivePeer,
    name=st.sampled_from(["bob", "charlie"]),
    state=st.sampled_from(PeerState),
    reach=st.sampled_from(Reach),
    epoch=st.integers(0, 3),
    samples_accumulated=st.integers(0, 3),
    samples_per_second=st.sampled_from([0.0, 1.5]),
    loss=st.sampled_from([None, 1.0]),
    seen_at=instants,
)
peer_maps = st.dictionaries(st.sampled_from("abcdef"), live_peers, max_size=5)
figures = st.builds(
    Figures,
    as_of=st.none() | instants,
    epoch=st.integers(0, 3),
    epoch_started_at=st.none() | instants,
    samples_accumulated=st.integers(0, 200),
    samples_per_second=st.sampled_from([0.0, 2.0]),
    loss=st.sampled_from([None, 1.0, 2.0]),
    samples_total=st.integers(0, 3),
)
facts = st.builds(
    RunFacts,
    slug=st.just("demo"),
    title=st.sampled_from(["A", "B"]),
    run_state=st.sampled_from(RunState),
    run_text=st.sampled_from(["", "paused by alice"]),
    changed_at=instants,
    config_version=st.integers(0, 2),
    target_batch_size=st.integers(1, 200),
    heard_at=st.none() | instants,
)
states = st.builds(
    lambda facts, figures, peers, seq: live_run_build(
        facts, figures, peers, seq=seq, now=NOW
    ).model_dump(mode="json"),
    facts,
    figures,
    peer_maps,
    st.integers(0, 9),
)


@given(old=states | st.just({}), new=states)
def test_the_old_state_with_the_patch_is_the_new_state(
    old: dict[str, object], new: dict[str, object]
) -> None:
    patch = state_diff(old, new)
    assert state_apply(old, patch) == new
    assert state_apply(new, patch) == new
    assert state_diff(new, new) == {}


@given(known=peer_maps, observed=peer_maps)
def test_merging_is_settled_and_old_peers_are_forgotten(
    known: dict[str, LivePeer], observed: dict[str, LivePeer]
) -> None:
    merged = peers_merge(known, observed, as_of=NOW)
    assert peers_merge(merged, {}, as_of=NOW) == merged
    for key, peer in merged.items():
        age = (NOW - peer.seen_at).total_seconds()
        assert age <= 600
        if age > 120:
            assert peer.state in (PeerState.LEFT, PeerState.BANNED)
        assert key in known or key in observed


@given(old=peer_maps, new=peer_maps)
def test_who_joins_has_left_before(old: dict[str, LivePeer], new: dict[str, LivePeer]) -> None:
    out = (PeerState.LEFT, PeerState.BANNED)
    joined = sum(move == "joined" for move, _, _ in peer_moves(old, new))
    gone = sum(move != "joined" for move, _, _ in peer_moves(old, new))
    before = sum(peer.state not in out for peer in old.values())
    after = sum(peer.state not in out for peer in new.values())
    assert before + joined - gone == after


def test_a_pause_does_not_count_as_a_stall() -> None:
    run = RunFacts(
        slug="demo", title="A", run_state=RunState.OPEN, run_text="opened by alice",
        changed_at=NOW - timedelta(seconds=60), config_version=1, heard_at=NOW,
    )  # fmt: skip
    numbers = Figures(as_of=NOW, epoch_started_at=NOW - timedelta(hours=9), samples_total=5)
    peer = LivePeer(
        name="bob", state=PeerState.TRAINING, reach=Reach.DIRECT, epoch=0,
        samples_accumulated=0, samples_per_second=1.0, seen_at=NOW,
    )  # fmt: skip
    live = live_run_build(run, numbers, {"a": peer}, seq=1, now=NOW)
    assert live.state is LiveState.TRAINING
