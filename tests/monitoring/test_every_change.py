"""Whoever follows the messages of a run has what a fresh reader has, whatever happens to it."""

import json
import random
import shutil
import subprocess
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from tests.factories import user_make
from tests.factories_runs import (
    Swarm,
    config_publish,
    observation_make,
    peer_make,
    report_make,
    run_make,
    signed,
    snapshot_make,
    snapshot_sign,
    swarm_make,
)
from training.protocol.claims import CheckpointFile, CheckpointManifest
from training.protocol.names import TYP_CHECKPOINT
from training.protocol.states import PeerState, RunState
from web.accounts.models import User
from web.accounts.services import device_revoke, user_ban
from web.core.events import MEMORY_STORE
from web.monitoring.ingest import snapshot_ingest
from web.monitoring.livestate import state_apply
from web.monitoring.selectors import live_state
from web.monitoring.services import live_state_rebuild, live_states_refresh
from web.runs.models import Run
from web.runs.selectors import config_current
from web.runs.services import checkpoint_register, run_bar_add, run_bar_lift, run_transition

SEEDS = range(8)
FOLD = Path(__file__).parents[1] / "frontend" / "fold.mjs"


class Story:
    """A run to which things happen by chance."""

    def __init__(self, alice: User, seed: int) -> None:
        self.chance = random.Random(seed)
        self.alice = alice
        self.swarm: Swarm = swarm_make(run_make(alice), 4)
        self.epoch = 0
        self.last = ""

    @property
    def run(self) -> Run:
        return Run.objects.get(pk=self.swarm.run.pk)

    def _snapshot(self, **fields: Any) -> None:
        now = timezone.now()
        fields = {
            "loss": self.chance.choice([None, 2.0]),
            "epoch": self.epoch,
            "lineage": config_current(self.run).lineage,
        } | fields
        here = [v for v in self.swarm.volunteers if self.chance.random() < 0.8]
        peers = tuple(
            observation_make(
                volunteer,
                now,
                epoch=max(0, self.epoch - self.chance.choice([0, 0, 1])),
                lineage=fields["lineage"],
                samples_accumulated=self.chance.randrange(60),
                samples_per_second=self.chance.choice([0.0, 4.0, 25.5]),
                state=self.chance.choice([PeerState.TRAINING] * 3 + list(PeerState)[:4]),
                loss=self.chance.choice([None, 2.5, 1.25]),
                seen_at=now - timedelta(seconds=self.chance.choice([0, 0, 5, 50, 130])),
            )
            for volunteer in here
        )
        snapshot = snapshot_make(self.swarm, now, peers=peers, **fields)
        self.last = snapshot_sign(self.swarm, snapshot, now)
        snapshot_ingest(self.swarm.credential, self.swarm.run, self.last, now)

    def snapshot(self) -> None:
        self._snapshot()

    def snapshot_again(self) -> None:
        if self.last:
            now = timezone.now()
            snapshot_ingest(self.swarm.credential, self.swarm.run, self.last, now)

    def epochs_finish(self) -> None:
        count, now = self.chance.choice([1, 1, 2, 7]), timezone.now()
        loss = self.chance.choice([None, 1.5])
        reports = tuple(
            report_make(self.swarm, self.epoch + i, now, loss=loss) for i in range(count)
        )
        self.epoch += count
        self._snapshot(finished_epochs=reports)

    def somebody_joins(self) -> None:
        name = f"new{len(self.swarm.volunteers)}"
        self.swarm.volunteers.append(peer_make(self.run, user_make(name), name))
        self._snapshot()

    def somebody_is_banned(self) -> None:
        user = self.chance.choice(self.swarm.volunteers).device.user
        user_ban(self.alice, user, "spam")
        self._snapshot()

    def somebody_is_barred(self) -> None:
        user = self.chance.choice(self.swarm.volunteers).device.user
        if not self.run.bars.filter(user=user).exists():
            run_bar_add(self.alice, self.run, user, "noise")
        elif self.chance.random() < 0.5:
            run_bar_lift(self.alice, self.run, user)

    def device_is_revoked(self) -> None:
        device = self.chance.choice(self.swarm.volunteers).device
        device_revoke(device.user, device)

    def config(self) -> None:
        swarm = {"target_batch_size": self.chance.choice([50, 100, 400]), "min_peers": 2}
        config_publish(self.swarm.run, swarm=swarm, max_epochs=self.chance.choice([None, 900]))

    def config_of_a_new_lineage(self) -> None:
        config_publish(
            self.swarm.run,
            task={"name": "tiny", "params": {"hidden": self.chance.randrange(4, 99)}},
        )

    def pause_or_open(self) -> None:
        state = self.run.state
        if state in (RunState.OPEN, RunState.PAUSED):
            move = "pause" if state == RunState.OPEN else "open"
            run_transition(self.alice, self.run, move, self.chance.choice(["", "disk full"]))

    def checkpoint(self) -> None:
        manifest = CheckpointManifest(
            run=self.swarm.run.slug,
            lineage=config_current(self.run).lineage,
            epoch=self.epoch,
            config_version=config_current(self.run).version,
            saved_at=timezone.now(),
            files=(CheckpointFile(name="model.safetensors", sha256="ab" * 32, size=10),),
        )
        jws = signed(manifest, TYP_CHECKPOINT, self.swarm.coordinator_key, timezone.now())
        checkpoint_register(self.run, self.swarm.coordinator, jws)

    def time_passes(self) -> None:
        live_states_refresh(timezone.now() + timedelta(seconds=self.chance.choice([0, 25, 400])))

    def store_is_rebuilt(self) -> None:
        live_state_rebuild(self.run, timezone.now())

    def finish(self) -> None:
        if self.run.state in (RunState.OPEN, RunState.PAUSED):
            run_transition(self.alice, self.run, "finish")


MIDDLE = [
    Story.snapshot, Story.snapshot, Story.snapshot_again, Story.epochs_finish,
    Story.epochs_finish, Story.somebody_joins, Story.somebody_is_banned, Story.somebody_is_barred,
    Story.device_is_revoked, Story.config, Story.config_of_a_new_lineage, Story.pause_or_open,
    Story.checkpoint, Story.time_passes, Story.store_is_rebuilt,
]  # fmt: skip


def messages_of(act: Callable[[Story], None], story: Story, capture: Any) -> list[dict[str, Any]]:
    """Return what the watchers of the run are told while ``act`` happens."""
    heard: list[dict[str, Any]] = []

    def watcher(slug: str | None, text: str) -> None:
        if slug == story.swarm.run.slug:
            heard.append(json.loads(text))

    MEMORY_STORE.watchers.add(watcher)
    try:
        with capture(execute=True):
            act(story)
    finally:
        MEMORY_STORE.watchers.discard(watcher)
    return heard


def folded(state: dict[str, Any], messages: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what a follower has after some messages."""
    for message in messages:
        assert message["seq"] > state["seq"], "numbers only grow"
        if message["type"] == "run.patch":
            state = state_apply(state, message["patch"]) | {"seq": message["seq"]}
    return state


def without_words(state: dict[str, Any]) -> dict[str, Any]:
    """State and reason follow from the rest and the time: test_same_words.py has them."""
    return {name: value for name, value in state.items() if name not in ("state", "reason")}


@pytest.mark.django_db
@pytest.mark.parametrize("seed", SEEDS)
def test_a_follower_has_what_a_fresh_reader_has_after_every_change(
    seed: int, alice: User, django_capture_on_commit_callbacks: Any
) -> None:
    story = Story(alice, seed)
    state = first = live_state(story.run)
    everything: list[dict[str, Any]] = []
    acts = story.chance.sample(MIDDLE, len(MIDDLE))
    for act in [*acts, Story.finish, Story.snapshot]:
        messages = messages_of(act, story, django_capture_on_commit_callbacks)
        state = folded(state, messages)
        everything += messages
        fresh = live_state(story.run)
        assert without_words(state) == without_words(fresh), act.__name__
    assert browser_folds(first, everything) == without_words(live_state(story.run))


def browser_folds(first: dict[str, Any], messages: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what the page's own script makes of the same messages."""
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    done = subprocess.run(
        ["node", str(FOLD)],
        input=json.dumps({"state": first, "messages": messages}),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return without_words(json.loads(done.stdout))
