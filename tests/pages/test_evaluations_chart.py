"""Evaluations over the checkpoints: still lines, columns for scripts, a table and a CSV."""

import csv
import html
import json
import re
from io import StringIO
from itertools import pairwise
from typing import Any

import pytest
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from tests.pages.pasts import past_scene
from tests.pages.scenes import evaluations_make, run_open
from web.accounts.models import User
from web.monitoring.models import EpochRecord
from web.monitoring.trained import samples_by_then, samples_in
from web.pages.charts import polylines_at
from web.runs.models import Checkpoint, Run
from web.runs.services import run_rewind

RUN = "/runs/python-docs/"
CHART = f"{RUN}evaluations/chart/"


@pytest.fixture
def run(alice: User, bob: User) -> Run:
    """Return a run whose second lineage went on from epoch 12 of the first."""
    run = past_scene(alice, [bob])
    Checkpoint.objects.create(
        run=run, lineage=1, epoch=12, config_version=1, manifest="x.y.z", files=[],
        saved_at=run.checkpoints.get().saved_at,
    )  # fmt: skip
    run_rewind(alice, run, run.checkpoints.get(epoch=12))
    evaluations_make(run, (10, 20, 30))
    evaluations_make(run, (20, 30), lineage=2)
    return run


def columns(text: str) -> dict[str, Any]:
    (found,) = re.findall(r'data-evaluation-columns="([^"]*)"', text)
    return dict(json.loads(html.unescape(found)))


def test_the_runs_page_loads_a_chart_of_each_figure(run: Run, client: Client) -> None:
    page = client.get(RUN).text
    assert f'hx-get="{CHART}"' in page
    assert "evaluation-columns" not in page, "the page itself asks for nothing more"
    part = client.get(CHART).text
    assert "<html" not in part
    assert part.count("<polyline") == 6, "three figures of two lineages"
    for words in ("Masked-word loss", "Masked words right", "Sentence order right"):
        assert f"{words} over the epochs" in part
    found = columns(part)
    assert found["epoch"] == [10, 20, 30, 20, 30]
    assert found["lineage"] == [1, 1, 1, 2, 2]
    assert found["m0"][0] > found["m0"][2] > found["m0"][4]


def test_only_a_new_evaluation_is_worth_another_answer(run: Run, client: Client) -> None:
    text = client.get(CHART).text
    (known,) = re.findall(r'name="known" value="([^"]+)"', text)
    answer = client.get(CHART, {"known": known})
    assert (answer.status_code, answer.content) == (204, b"")
    evaluations_make(run, [28], lineage=2)
    assert client.get(CHART, {"known": known}).status_code == 200


def test_the_table_and_the_csv_say_the_same_as_the_chart(run: Run, client: Client) -> None:
    found = columns(client.get(CHART).text)
    page = client.get(f"{RUN}evaluations/").text
    assert columns(page) == found, "the page of its own has the chart too, without scripts"
    answer = client.get(f"{RUN}history/evaluations.csv")
    assert answer["Content-Type"].startswith("text/csv")
    rows = list(csv.DictReader(StringIO(answer.text)))
    assert [int(row["samples"]) for row in rows] == found["samples"]
    assert [float(row["mlm_loss"]) for row in rows] == found["m0"]
    for samples in found["samples"]:
        assert f">{samples:,}</td>" in page


def test_samples_by_then_are_those_in_the_state_and_not_those_that_were_undone(run: Run) -> None:
    records = EpochRecord.objects.filter(run=run)
    each = {(r.lineage, r.epoch): r.samples for r in records}
    found = samples_by_then(run, [(1, 20), (2, 20)])
    assert found[1, 20] == sum(each[1, e] for e in range(20))
    branch = sum(each[1, e] for e in range(12))
    assert found[2, 20] == branch + sum(each[2, e] for e in range(12, 20))


def test_a_run_without_evaluations_has_no_chart_and_asks_again(client: Client, alice: User) -> None:
    run_open(alice)
    text = client.get(CHART).text
    assert "<svg" not in text
    assert 'name="known"' in text
    assert client.get(f"{RUN}history/evaluations.csv").text.count("\n") == 1


def test_only_those_who_may_see_the_run_get_its_chart(run: Run, client: Client) -> None:
    Run.objects.update(is_public=False)
    for path in (CHART, f"{RUN}history/evaluations.csv"):
        assert client.get(path).status_code == 404


epochs = st.lists(st.integers(0, 1000), min_size=1, max_size=30, unique=True).map(sorted)


@given(epochs, st.integers(0, 1000), st.data())
def test_a_later_state_of_a_lineage_never_holds_fewer_samples(
    known: list[int], branch: int, data: st.DataObject
) -> None:
    records = [(1, epoch, data.draw(st.integers(0, 10**6))) for epoch in known]
    records += [(2, branch + epoch, data.draw(st.integers(0, 10**6))) for epoch in known]
    states = [(lineage, epoch) for lineage in (1, 2) for epoch in range(0, 2100, 50)]
    found = samples_in(states, {2: (1, branch)}, records)
    for low, high in pairwise(states):
        assert low[0] != high[0] or found[low] <= found[high]
    first = samples_in([(2, branch), (1, branch)], {2: (1, branch)}, records)
    assert first[2, branch] == first[1, branch]


figures = st.floats(-1e6, 1e6)


@given(st.lists(st.lists(st.tuples(figures, figures), min_size=1, max_size=9), max_size=4))
def test_still_lines_stay_in_their_frame(lines: list[list[tuple[float, float]]]) -> None:
    drawn = polylines_at(lines, width=1000, height=160)
    assert len(drawn) == len(lines)
    for points in drawn:
        pairs = [tuple(map(float, pair.split(","))) for pair in points.split()]
        assert len(pairs) >= 2
        assert all(0 <= x <= 1000 and 0 <= y <= 160 for x, y in pairs)
