"""Server and browser say the same of the same evidence: state, reason, time left, share done."""

import json
import random
import shutil
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from training.protocol.api import LivePeer, LiveRun
from training.protocol.states import LiveState, PeerState, Reach, Role, RunState
from web.monitoring.livestate import Figures, RunFacts, live_run_build
from web.monitoring.pace import eta_text, goal_share, pace_range, span_text
from web.pages.runview import reach_text

HERE = Path(__file__).parent
NOW = datetime(2026, 3, 4, 12, 0, 0, tzinfo=UTC)
NUM_CASES = 1500
HEARD = (0, 2, 5, 19, 21, 95)
AGES = (0, 0.4, 3, 12, 19, 21, 45, 95, 119, 121, 240, 301, 800, 5000, 9000, 200_000)


def ago(chance: random.Random) -> datetime:
    return NOW - timedelta(seconds=chance.choice(AGES))


def peer_any(chance: random.Random) -> LivePeer:
    return LivePeer(
        name="bob",
        role=chance.choice([Role.TRAINER] * 4 + list(Role)),
        state=chance.choice([PeerState.TRAINING] * 4 + list(PeerState)),
        reach=chance.choice(list(Reach)),
        epoch=chance.choice([0, 7]),
        samples_accumulated=5,
        samples_per_second=1.0,
        seen_at=NOW,
    )


def facts_any(chance: random.Random) -> RunFacts:
    return RunFacts(
        slug="demo",
        title="Demo",
        run_state=chance.choice([RunState.OPEN] * 8 + list(RunState)),
        run_text=chance.choice(["", "paused by alice: disk full"]),
        changed_at=ago(chance),
        config_version=chance.choice([0, 1, 3]),
        target_batch_size=chance.choice([1, 100, 4096]),
        min_peers=chance.choice([1, 1, 2, 4]),
        heard_at=chance.choice(
            [None, *[NOW - timedelta(seconds=s) for s in (0, 2, 5, 19, 21, 95)]]
        ),
        max_epochs=chance.choice([None, 8, 1000]),
    )


def figures_any(chance: random.Random) -> Figures:
    low = chance.choice([None, 0.5, 40.0])
    return Figures(
        as_of=chance.choice([None, NOW, NOW, ago(chance)]),
        epoch=chance.choice([0, 7]),
        epoch_started_at=chance.choice([None, ago(chance)]),
        samples_accumulated=chance.choice([0, 29, 57, 99, 100, 4000]),
        samples_per_second=chance.choice([0.0, 0.01, 12.5]),
        samples_total=chance.choice([0, 700]),
        pace_low=low,
        pace_high=low and low * 1.7,
    )


def live_any(chance: random.Random) -> LiveRun:
    peers = {str(i): peer_any(chance) for i in range(chance.choice([0, 1, 2, 5]))}
    return live_run_build(facts_any(chance), figures_any(chance), peers, seq=1, now=NOW)


def browser_says(lives: list[LiveRun], now: datetime) -> list[dict[str, Any]]:
    """Return what the browser makes of the evidence alone: state and reason are taken away."""
    asked = []
    for live in lives:
        body = live.model_dump(mode="json")
        asked.append({"live": body | {"reason": ""}, "now": now.isoformat()})
    done = subprocess.run(
        ["node", str(HERE / "same_words.mjs")],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    said: list[dict[str, Any]] = json.loads(done.stdout)
    return said


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_server_and_browser_say_the_same_words_of_the_same_evidence() -> None:
    chance = random.Random(20260304)
    lives = [live_any(chance) for _ in range(NUM_CASES)]
    for live, said in zip(lives, browser_says(lives, NOW), strict=True):
        body = live.model_dump(mode="json")
        assert (said["state"], said["reason"]) == (live.state, live.reason), body
        assert said["reach"] == reach_text(body)
        assert said["eta"] == eta_text(body)
        assert said["share"] == pytest.approx(goal_share(body))
    assert {live.state for live in lives} == set(LiveState), "every word was said"
    assert sum(bool(eta_text(live.model_dump(mode="json"))) for live in lives) > 50


@pytest.mark.parametrize(
    ("reaches", "text"),
    [
        ([], "nobody trains yet"),
        (["direct", "client", "relayed"], "1 of 3 direct"),
        (["direct", "unknown", "client"], "1 of 2 direct, 1 not known"),
        (["unknown", "unknown"], "reach not known yet"),
    ],
)
def test_the_reach_is_counted_among_peers_whose_reach_is_known(
    reaches: list[str], text: str
) -> None:
    peers = {
        str(i): {"role": "trainer", "state": "training", "reach": reach}
        for i, reach in enumerate(reaches)
    }
    gone = {"role": "trainer", "state": "left", "reach": "direct"}
    assert reach_text({"peers": {**peers, "gone": gone}}) == text


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (31, 40, "31 to 40 s"),
        (39.5, 40, "about 40 s"),
        (100, 200, "1 to 4 min"),
        (7000, 9000, "1 to 3 h"),
        (7000, 7100, "116 to 119 min"),
        (86_400, 260_000, "1 to 4 days"),
        (0, 0, "about 0 s"),
    ],
)
def test_a_range_of_time_is_said_in_one_unit(low: float, high: float, text: str) -> None:
    assert span_text(low, high) == text


def test_the_pace_leaves_out_odd_epochs_and_needs_three() -> None:
    assert pace_range([(100, 10.0), (100, 5.0)]) is None
    assert pace_range([(100, 10.0), (100, 0.0), (0, 3.0), (100, 5.0)]) is None
    steady = [(100, 10.0)] * 8 + [(100, 1000.0), (100, 0.1)]
    assert pace_range(steady) == (10.0, 10.0)
    assert pace_range([(100, 10.0), (100, 5.0), (100, 20.0)]) == (5.0, 20.0)
