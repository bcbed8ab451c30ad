"""What pages compute by themselves: charts from the address, config in words, requirements."""

from datetime import UTC, datetime, timedelta

from django.http import QueryDict
from hypothesis import given
from hypothesis import strategies as st

from web.pages.charts import ChartQuery, chart_query, polyline
from web.pages.configview import config_groups
from web.pages.requirements import requirement_line

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_an_address_gives_the_view_and_nonsense_the_usual_one() -> None:
    assert chart_query(QueryDict("range=1h&scale=log&x=samples")) == ChartQuery(
        "1h", "log", "samples"
    )
    assert chart_query(QueryDict("range=9y&scale=&x=<b>")) == ChartQuery()
    assert ChartQuery("24h").start(NOW) == NOW - timedelta(hours=24)
    assert ChartQuery("all").start(NOW) is None


def test_a_line_spans_the_box_with_high_values_at_the_top() -> None:
    assert polyline([1, 2, 3], width=10, height=4) == "0.0,4.0 5.0,2.0 10.0,0.0"
    assert polyline([1, 3], width=10, height=6, floor=0) == "0.0,4.0 10.0,0.0"
    assert polyline([5, 5], width=10, height=6) == "0.0,6.0 10.0,6.0"


def test_no_line_is_drawn_through_fewer_than_two_points() -> None:
    assert polyline([]) == polyline([1]) == polyline([None, 1, None]) == ""


@given(st.lists(st.none() | st.floats(-1e6, 1e6), max_size=40))
def test_a_line_never_leaves_its_box(values: list[float | None]) -> None:
    for point in polyline(values, width=100, height=30).split():
        x, y = map(float, point.split(","))
        assert 0 <= x <= 100
        assert -0.1 <= y <= 30.1


def test_a_config_is_grouped_in_words() -> None:
    body = {
        "run": "docs", "previous_sha256": None, "swarm": {"target_batch_size": 5},
        "task": {"name": "albert", "params": {"hidden_size": 128}},
        "artifacts": [{"name": "tokenizer.json", "size": 12345, "sha256": "ab" * 32}],
    }  # fmt: skip
    groups = {group.title: dict(group.rows) for group in config_groups(body)}
    assert groups["Run"] == {"run": "docs"}
    assert groups["What is trained"] == {"name": "albert", "hidden size": "128"}
    assert groups["Swarm"] == {"target batch size": "5"}
    assert "12,345 bytes" in groups["Files"]["tokenizer.json"]


def test_a_wide_model_asks_for_a_gpu() -> None:
    assert "CPU is enough" in requirement_line({"task": {"params": {"hidden_size": 128}}})
    assert "GPU" in requirement_line({"task": {"params": {"hidden_size": 1024}}})
    assert "CPU is enough" in requirement_line({})
