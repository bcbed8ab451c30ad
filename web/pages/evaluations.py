"""What the saved states of a run's model can do: a page, and a part of the run's page."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe
from django.views.decorators.vary import vary_on_headers

from web.runs.selectors import run_get_visible
from web.workers.evaluation_selectors import evaluation_table

PART_ROWS = 8
PAGE_ROWS = 200


@require_safe
@vary_on_headers("HX-Request")
def evaluations_page(request: HttpRequest, slug: str) -> HttpResponse:
    """Figures and guesses by checkpoint; the newest few for the run's page, which loads them."""
    run = run_get_visible(request.user, slug)
    is_part = request.headers.get("HX-Request") == "true"
    table = evaluation_table(run, PART_ROWS if is_part else PAGE_ROWS)
    name = "run_evaluations_fragment" if is_part else "evaluations"
    return render(request, f"pages/{name}.html", {"run": run, "evaluations": table})
