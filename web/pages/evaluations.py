"""What the saved states of a run's model can do: a page, and two parts of the run's page."""

import json
from itertools import groupby
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe
from django.views.decorators.vary import vary_on_headers

from web.pages.charts import polylines_at
from web.runs.selectors import run_get_visible
from web.workers.evaluation_selectors import (
    evaluation_table,
    figure_text,
    is_share,
    metric_words,
)
from web.workers.evaluation_series import (
    EvaluationPoint,
    evaluation_points,
    evaluations_version,
    metrics_in,
)

PART_ROWS = 8
PAGE_ROWS = 200
TWIN_ROWS = 100


@require_safe
@vary_on_headers("HX-Request")
def evaluations_page(request: HttpRequest, slug: str) -> HttpResponse:
    """Figures and guesses by checkpoint; the newest few for the run's page, which loads them."""
    run = run_get_visible(request.user, slug)
    is_part = request.headers.get("HX-Request") == "true"
    table = evaluation_table(run, PART_ROWS if is_part else PAGE_ROWS)
    name = "run_evaluations_fragment" if is_part else "evaluations"
    context: dict[str, Any] = {"run": run, "evaluations": table}
    if not is_part:
        context["evaluation_chart"] = evaluation_chart(evaluation_points(run))
    return render(request, f"pages/{name}.html", context)


@require_safe
def evaluations_chart(request: HttpRequest, slug: str) -> HttpResponse:
    """The chart for the run's page, which loads it; nothing when ``?known=`` is the newest."""
    run = run_get_visible(request.user, slug)
    version = evaluations_version(run)
    if request.GET.get("known") == version:
        return HttpResponse(status=204)
    chart = evaluation_chart(evaluation_points(run))
    context = {"run": run, "evaluation_chart": chart, "evaluations_version": version}
    return render(request, "pages/run_evaluations_chart_fragment.html", context)


def evaluation_chart(points: list[EvaluationPoint]) -> dict[str, Any]:
    """Return metrics with their still lines, the columns for scripts, and the table. Pure."""
    names = metrics_in(points)
    metrics = [
        {
            "key": f"m{number}",
            "label": metric_words(name),
            "is_share": is_share(name),
            "lines": _lines(points, name),
        }
        for number, name in enumerate(names)
    ]
    columns: dict[str, list[Any]] = {
        "lineage": [p.lineage for p in points],
        "epoch": [p.epoch for p in points],
        "samples": [p.samples for p in points],
    }
    columns |= {f"m{i}": [p.figures.get(name) for p in points] for i, name in enumerate(names)}
    rows = [
        {"point": p, "cells": [figure_text(name, p.figures.get(name)) for name in names]}
        for p in points[: -TWIN_ROWS - 1 : -1]
    ]
    # An attribute holds them: of a part that is loaded later, no script element is kept.
    text = json.dumps(columns, separators=(",", ":"))
    return {"metrics": metrics, "columns": text, "rows": rows, "num_points": len(points)}


def _lines(points: list[EvaluationPoint], name: str) -> list[str]:
    """Return one polyline per lineage, the newest last."""
    known = [point for point in points if name in point.figures]
    lines = [
        [(float(point.epoch), point.figures[name]) for point in lineage]
        for _, lineage in groupby(known, key=lambda point: point.lineage)
    ]
    return polylines_at(lines, width=1000, height=160)
