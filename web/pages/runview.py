"""What the page of a run shows, put together from the domain's selectors."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from django.contrib.auth.models import AnonymousUser

from training.protocol.states import RunState
from web.accounts.models import User
from web.core.wording import STATE_TONES, STATE_WORDS
from web.monitoring.selectors import live_state, run_events, run_series
from web.pages.charts import ChartQuery, polyline
from web.pages.comb import comb
from web.pages.configview import config_groups
from web.pages.requirements import requirement_line
from web.runs.config_diff import config_diff
from web.runs.models import Run
from web.runs.selectors import config_newest, config_previous

SERIES: Final = ("loss", "samples_per_second", "num_peers", "epoch", "samples_total")
MAX_PEER_ROWS: Final = 200
MAX_EVENTS: Final = 30
MAX_CHECKPOINTS: Final = 5
CHART_POINTS: Final = 500
TABLE_POINTS: Final = 24


def run_view(
    run: Run, viewer: User | AnonymousUser, query: ChartQuery, now: datetime
) -> dict[str, Any]:
    """Return the context of pages/run.html, apart from what belongs to the viewer."""
    state = live_state(run, viewer)
    config = config_newest(run)
    previous = config_previous(config) if config else None
    series = run_series(run, SERIES, query.start(now), query.end, CHART_POINTS)
    return {
        "run": run,
        "state": state,
        "comb": comb(state),
        "peers": peer_rows(state),
        "reach": reach_text(state),
        "next_seconds": next_seconds(state),
        "is_open": run.state == RunState.OPEN,
        "config": config,
        "config_groups": config_groups(config.body) if config else [],
        "config_diff": config_diff(previous.body, config.body) if config and previous else [],
        "requirement": requirement_line(config.body) if config else "",
        "chart": query,
        "series_rows": series_rows(series),
        "loss_line": polyline(series["loss"], width=1000, height=220),
        "rate_line": polyline(series["samples_per_second"], width=1000, height=160, floor=0),
        "events": run_events(run, MAX_EVENTS),
        "checkpoints": list(run.checkpoints.all()[:MAX_CHECKPOINTS]),
        "wording": {"words": STATE_WORDS, "tones": STATE_TONES},
    }


def peer_rows(state: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the peers table: the fastest first, without the coordinator's."""
    rows = [
        dict(peer, key=key, lag=max(0, state["epoch"] - peer["epoch"]))
        for key, peer in state["peers"].items()
        if peer["role"] != "coordinator"
    ]
    rows.sort(key=lambda row: (-row["samples_per_second"], row["name"]))
    return rows[:MAX_PEER_ROWS]


def reach_text(state: Mapping[str, Any]) -> str:
    """Return how many of the peers can be reached directly: ``5 of 7 direct``."""
    seen = [
        peer
        for peer in state["peers"].values()
        if peer["role"] != "coordinator" and peer["state"] != "left"
    ]
    direct = sum(peer["reach"] == "direct" for peer in seen)
    return f"{direct} of {len(seen)} direct" if seen else "nobody trains yet"


def next_seconds(state: Mapping[str, Any]) -> float | None:
    """Return in how many seconds the target batch size is reached at the present speed."""
    rest = state["target_batch_size"] - state["samples_accumulated"]
    speed = state["samples_per_second"]
    return rest / speed if state["state"] == "training" and speed > 0 and rest > 0 else None


def series_rows(series: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Return some points of the charts, newest first: their twin as a table."""
    count = len(series["t"])
    step = max(1, count // TABLE_POINTS)
    return [
        {"at": datetime.fromtimestamp(series["t"][i], UTC)}
        | {name: series[name][i] for name in SERIES}
        for i in range(count - 1, -1, -step)
    ]
