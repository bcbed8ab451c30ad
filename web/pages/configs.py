"""The signed configs of a run, for everybody: any version, compared with any other."""

from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from training.protocol.errors import ErrorCode
from web.core.errors import AppError
from web.pages.configview import config_groups
from web.runs.config_diff import config_diff
from web.runs.models import Run, RunConfigVersion
from web.runs.selectors import config_current, run_get_visible

MAX_VERSIONS: Final = 200


@require_safe
def config_page(request: HttpRequest, slug: str) -> HttpResponse:
    """One version, what differs from another one, and the list of all.

    ``?version=`` and ``?against=`` choose; htmx gets the comparison alone.
    """
    run = run_get_visible(request.user, slug)
    newest = config_current(run)
    shown = _version(run, request.GET.get("version", ""), newest)
    against = request.GET.get("against", "") or str(shown.version - 1)
    base = _version(run, against, None) if against != "0" else None
    context: dict[str, Any] = {
        "run": run,
        "config": shown,
        "newest": newest.version,
        "base": base,
        "changes": config_diff(base.body, shown.body) if base else [],
        "numbers": range(newest.version, 0, -1),
    }
    if request.headers.get("HX-Request"):
        response = render(request, "pages/config_changes_fragment.html", context)
    else:
        rows = run.configs.defer("body", "jws").order_by("-version")[:MAX_VERSIONS]
        context |= {"config_groups": config_groups(shown.body), "versions": list(rows)}
        response = render(request, "pages/config.html", context)
    response["Vary"] = "HX-Request, Cookie"
    return response


def _version(run: Run, text: str, default: RunConfigVersion | None) -> RunConfigVersion:
    """Return the version that the address names.

    Raises:
        AppError: NOT_FOUND.
    """
    if not text and default is not None:
        return default
    number = int(text) if text.isdecimal() and len(text) < 9 else 0
    if default is not None and number == default.version:
        return default
    version = run.configs.filter(version=number).first()
    if version is None:
        raise AppError(ErrorCode.NOT_FOUND, f"This run has no config version {text[:20]}.")
    return version
