"""The audit log: everything for the staff, a run's part for whoever has a seat at its desk."""

from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from typing import Any

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from web.control.access import DeskRequest, run_desk, staff_only
from web.control.forms import AuditForm
from web.core.auditing import AuditQuery, audit_check_newest, audit_row, audit_search
from web.core.exports import table_answer
from web.core.models import AuditEntry
from web.runs.models import Run

PER_PAGE = 50
COLUMNS = (
    "seq", "at", "actor_id", "actor_name", "code", "target", "run", "data", "previous", "hash",
)  # fmt: skip
_APART = ("reason", "before", "after", "old", "new")


@staff_only
@require_safe
def audit_page(request: DeskRequest) -> HttpResponse:
    """All acts with consequences, the newest first."""
    return _page(request, None)


@staff_only
@require_safe
def audit_export(request: DeskRequest) -> StreamingHttpResponse:
    """The same as a file: ``?format=csv`` or ``ndjson``."""
    return _export(request, None)


@run_desk
@require_safe
def run_audit_page(request: DeskRequest, run: Run) -> HttpResponse:
    """What was done to one run, its peers, people and workers."""
    return _page(request, run)


@run_desk
@require_safe
def run_audit_export(request: DeskRequest, run: Run) -> StreamingHttpResponse:
    """The same as a file."""
    return _export(request, run)


def audit_rows(entries: Iterable[AuditEntry]) -> list[dict[str, Any]]:
    """Return entries with their reason, what changed, and the rest, ready to be read."""
    return [_row(entry) for entry in entries]


def _row(entry: AuditEntry) -> dict[str, Any]:
    changes = changes_of(entry.data)
    told = {name for name, _, _ in changes}
    details = [
        (name.replace("_", " "), words_of(value))
        for name, value in entry.data.items()
        if name not in _APART and value not in ("", None, [], {})
    ]
    return {
        "entry": entry,
        "words": entry.code.replace(".", " ").replace("_", " ").capitalize(),
        "reason": entry.data.get("reason", ""),
        "changes": [(name, words_of(old), words_of(new)) for name, old, new in changes],
        "details": [(name, value) for name, value in details if name not in told],
    }


def words_of(value: Any) -> Any:
    """Return a value as people read it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(str(words_of(item)) for item in value) or "none"
    if isinstance(value, dict):
        return ", ".join(f"{name} {words_of(item)}" for name, item in value.items())
    return value


def changes_of(data: dict[str, Any]) -> list[tuple[str, Any, Any]]:
    """Return what an act changed: name, value before, value after."""
    before, after = data.get("before", data.get("old")), data.get("after", data.get("new"))
    if before is None and after is None:
        return []
    if not isinstance(before, dict) and not isinstance(after, dict):
        return [("", before, after)]
    old = before if isinstance(before, dict) else {}
    new = after if isinstance(after, dict) else {}
    names = dict.fromkeys([*old, *new])
    return [(name.replace("_", " "), old.get(name), new.get(name)) for name in names]


def audit_query(request: HttpRequest, run: Run | None) -> tuple[AuditForm, AuditQuery]:
    """Return the filter of an address; what makes no sense in it asks for nothing."""
    form = AuditForm(request.GET or None, has_run=run is None)
    data: dict[str, Any] = {}
    if form.is_bound:
        form.is_valid()
        data = {name: value for name, value in form.cleaned_data.items() if value}
    since, until = data.get("since"), data.get("until")
    query = AuditQuery(
        text=data.get("q", ""),
        actor=data.get("actor", ""),
        code=data.get("code", ""),
        target=data.get("target", ""),
        run=run.slug if run else data.get("run", ""),
        since=datetime.combine(since, datetime.min.time(), UTC) if since else None,
        until=_end_of(until) if until and until < date.max else None,
    )
    return form, query


def _end_of(day: date) -> datetime:
    return datetime.combine(day, datetime.min.time(), UTC) + timedelta(days=1)


def _page(request: DeskRequest, run: Run | None) -> HttpResponse:
    form, query = audit_query(request, run)
    page = Paginator(audit_search(query), PER_PAGE).get_page(request.GET.get("page"))
    context = {
        "run": run,
        "form": form,
        "page": page,
        "rows": audit_rows(page.object_list),
        "check": audit_check_newest(),
        "is_filtered": query != AuditQuery(run=run.slug if run else ""),
    }
    return render(request, "control/audit.html", context)


def _export(request: DeskRequest, run: Run | None) -> StreamingHttpResponse:
    _, query = audit_query(request, run)
    return table_answer(
        request,
        audit_search(query),
        format=request.GET.get("format", "ndjson"),
        columns=COLUMNS,
        item=audit_row,
        name=f"audit-{run.slug}" if run else "audit",
    )
