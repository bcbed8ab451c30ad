"""What the page of a run shows, put together from the domain's selectors."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from django.contrib.auth.models import AnonymousUser
from django.http import QueryDict

from training.protocol.states import RunState
from web.accounts.models import User
from web.core.templatetags.ui import short, state_words
from web.core.wording import STATE_TONES, STATE_WORDS
from web.monitoring.pace import eta_text, goal_samples, goal_share
from web.monitoring.selectors import live_state_of, run_events, run_series
from web.monitoring.series_kept import run_series_lately
from web.pages.charts import RANGES, chart_query, polyline
from web.pages.comb import comb
from web.pages.configview import config_groups
from web.pages.peersview import (
    MAX_ROWS,
    bubble_size,
    columns_of,
    options_of,
    peer_rows,
    peers_query,
    rows_all,
)
from web.pages.requirements import requirement_line
from web.runs.config_diff import config_diff
from web.runs.models import Run
from web.runs.saved_files import saved_states
from web.runs.selectors import configs_last

SERIES: Final = ("loss", "samples_per_second", "num_peers", "epoch", "samples_total")
MAX_EVENTS: Final = 30
MAX_CHECKPOINTS: Final = 5
KEPT_PARAMS: Final = ("range", "scale", "x", "period", "sort", "view")
"""Of the address, when the peers are filtered without a script."""
PEER_FILTER_WORDS: Final = {
    "role": {"label": "Role", "any": "Any role"},
    "class": {"label": "Hardware", "any": "Any hardware"},
    "version": {"label": "Version", "any": "Any version"},
    "reach": {"label": "Reach", "any": "Any reach"},
}
CHART_POINTS: Final = 500
TABLE_POINTS: Final = 24


def run_view(
    run: Run, viewer: User | AnonymousUser, params: QueryDict, now: datetime
) -> dict[str, Any]:
    """Return the context of pages/run.html, apart from what belongs to the viewer.

    ``run`` was read just now: its number must not be newer than the state.
    """
    configs = configs_last(run, 2)
    config = configs[0] if configs else None
    checkpoints = list(run.checkpoints.defer("manifest")[:MAX_CHECKPOINTS])
    state = live_state_of(run, config, checkpoints[0] if checkpoints else None, now=now)
    events = run_events(run, MAX_EVENTS + 1)
    context = {
        "run": run,
        "now": now,
        "state": state,
        "live": _embedded(state),
        "comb": comb(state),
        "reach": reach_text(state),
        "next_seconds": next_seconds(state),
        "goal": goal_of(state),
        "is_open": run.state == RunState.OPEN,
        "config": config,
        "base": configs[1] if len(configs) > 1 else None,
        "config_groups": config_groups(config.body) if config else [],
        "config_diff": config_diff(configs[1].body, configs[0].body) if len(configs) > 1 else [],
        "requirement": requirement_line(config.body) if config else "",
        "events": events[:MAX_EVENTS],
        "has_older_events": len(events) > MAX_EVENTS,
        "checkpoints": saved_states(run.slug, checkpoints),
        "wording": {"words": STATE_WORDS, "tones": STATE_TONES},
    }
    return context | peers_context(state, viewer, params) | charts_context(run, params, now)


def goal_of(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the large number runs towards; static/js/pace.js says the same."""
    return {"samples": goal_samples(state), "share": goal_share(state), "eta": eta_text(state)}


def charts_context(run: Run, params: QueryDict, now: datetime) -> dict[str, Any]:
    """Return the part of the charts."""
    query = chart_query(params)
    if query.is_zoomed:
        series = run_series(run, SERIES, query.start(now), query.end, CHART_POINTS)
    else:
        series = run_series_lately(run, SERIES, RANGES[query.range], CHART_POINTS, now)
    return {
        "chart": query,
        "series_rows": series_rows(series),
        "loss_line": polyline(series["loss"], width=1000, height=220),
        "rate_line": polyline(series["samples_per_second"], width=1000, height=160, floor=0),
    }


def peers_context(
    state: Mapping[str, Any], viewer: User | AnonymousUser, params: QueryDict
) -> dict[str, Any]:
    """Return the part of the peers."""
    query = peers_query(params)
    every = rows_all(state)
    rows = peer_rows(every, query)
    own_name = viewer.get_username()
    shown = rows[:MAX_ROWS]
    fastest = max((row["samples_per_second"] for row in shown), default=0.0)
    for row in shown:
        row["is_mine"] = bool(own_name) and row["name"] == own_name and not row["managed"]
        row["size"] = bubble_size(row["samples_per_second"], fastest)
        row["title"] = bubble_title(row)
    return {
        "peers": shown,
        "peers_query": query,
        "peer_columns": columns_of(query),
        "peer_filters": [f | PEER_FILTER_WORDS[f["name"]] for f in options_of(every, query)],
        "num_peers_wanted": len(rows),
        "num_peers_more": len(rows) - len(shown),
        "num_peers_all": len(every),
        "kept_params": {n: params[n] for n in KEPT_PARAMS if n in params},
        "own_name": own_name,
    }


def bubble_title(row: Mapping[str, Any]) -> str:
    """Return a peer in one line; static/js/bubbles.js says the same."""
    name = " · ".join(part for part in (row["name"], row["device"]) if part)
    return f"{name}: {short(row['samples_per_second'])} samples/s, {state_words(row['state'])}"


def _embedded(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return the state as the page carries it: of a large swarm without the peers.

    The browser then asks for a whole state instead of what came after this one.
    """
    if len(state["peers"]) <= MAX_ROWS:
        return dict(state)
    return {**state, "peers": {}, "is_partial": True}


def reach_text(state: Mapping[str, Any]) -> str:
    """Return how many can be reached directly, of those whose reach is known.

    static/js/evidence.js says the same.
    """
    seen = [
        peer
        for peer in state["peers"].values()
        if peer["role"] != "coordinator" and peer["state"] != "left"
    ]
    if not seen:
        return "nobody trains yet"
    known = [peer["reach"] for peer in seen if peer["reach"] != "unknown"]
    if not known:
        return "reach not known yet"
    unknown = f", {len(seen) - len(known)} not known" if len(known) < len(seen) else ""
    return f"{known.count('direct')} of {len(known)} direct{unknown}"


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
