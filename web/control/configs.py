"""Configs at the desk: written as a draft, checked, published, exported, imported."""

import json
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from training.protocol.errors import ErrorCode
from web.accounts.models import User
from web.control.access import DeskRequest, run_desk
from web.control.draftforms import (
    based_on_of,
    conflict_say,
    revision_of,
    revision_seen,
    writer_require,
)
from web.control.draftview import (
    changes_behind,
    differences,
    errors_elsewhere,
    errors_of,
    fields_for,
    file_rows,
    files_ticked,
    groups_of,
)
from web.core.errors import AppError
from web.monitoring.fleet import situation_of
from web.runs.catalogue import tasks_allowed
from web.runs.config_diff import config_diff
from web.runs.config_file import MAX_FILE, config_file_read
from web.runs.draft_body import DraftError, artifacts_of, body_of_form, body_own
from web.runs.findings import Severity
from web.runs.lint import begins_lineage, blockers, lint
from web.runs.models import ConfigDraft, Run
from web.runs.selectors import (
    artifacts_stored,
    config_newest,
    draft_is_behind,
    draft_of,
)
from web.runs.services import (
    DraftConflict,
    config_check,
    draft_discard,
    draft_file_add,
    draft_import,
    draft_publish,
    draft_save,
)

MAX_ARTIFACT = 900_000
"""Bytes of a file that is stored through the page: browsers may send little more at once."""


@run_desk
@require_http_methods(["GET", "HEAD", "POST"])
def draft_page(request: DeskRequest, run: Run) -> HttpResponse:
    """Write the next version: every field with its explanation, errors beside them."""
    writer_require(request, run)
    if request.method != "POST":
        return render(request, "control/draft.html", _draft_context(run, request.user))
    tasks, stored = tasks_allowed(), artifacts_stored(run, request.user)
    draft = draft_of(run)
    known = draft.body if draft else {}
    task = request.POST.get("task.name", "")[:60]
    files = files_ticked(known, request.POST.getlist("artifact"), stored)
    try:
        body = body_of_form(request.POST, fields_for(task, tasks), files)
        saved = draft_save(
            request.user, run, body, revision=revision_of(request), based_on=based_on_of(request)
        )
    except DraftError as error:
        raise AppError(ErrorCode.BODY_INVALID, f"Not saved. {error}") from error
    except DraftConflict as conflict:
        return _conflict_page(request, run, body, conflict.theirs)
    if request.POST.get("then") == "check" and not errors_of(run, saved.body, tasks):
        return redirect("control:draft_check", run.slug)
    messages.success(request, f"The draft is saved (revision {saved.revision}).")
    return redirect("control:draft", run.slug)


@run_desk
@require_http_methods(["GET", "HEAD", "POST"])
def draft_check_page(request: DeskRequest, run: Run) -> HttpResponse:
    """Say what the draft would do and what speaks against it; then publish it."""
    writer_require(request, run)
    draft = draft_of(run)
    if draft is None:
        messages.info(request, "There is no draft to check.")
        return redirect("control:draft", run.slug)
    if errors_of(run, draft.body, tasks_allowed()):
        messages.error(request, "Some fields do not fit yet: the errors stand beside them.")
        return redirect("control:draft", run.slug)
    try:
        context = _check_context(run, draft)
    except AppError as error:
        if error.code != ErrorCode.BODY_INVALID:
            raise
        messages.error(request, f"It cannot be checked yet. {error.detail}.")
        return redirect("control:draft", run.slug)
    if request.method != "POST":
        return render(request, "control/draft_check.html", context)
    accepted = request.POST.getlist("accept")
    findings = context["findings"]
    context["accepted"] = accepted
    try:
        version = draft_publish(
            request.user,
            run,
            revision=revision_of(request),
            findings=findings,
            accepted=accepted,
            based_on=based_on_of(request),
        )
    except DraftConflict as conflict:
        conflict_say(request, conflict, "Not published")
        return render(request, "control/draft_check.html", context, status=409)
    except AppError as error:
        if error.code != ErrorCode.BODY_INVALID:
            raise
        messages.error(request, error.detail)
        return render(request, "control/draft_check.html", context, status=422)
    messages.success(request, f"Version {version.version} is published, lineage {version.lineage}.")
    return redirect(f"{redirect('control:run', run.slug).url}#configs")


@run_desk
@require_POST
def draft_discard_view(request: DeskRequest, run: Run) -> HttpResponse:
    """Throw the draft away."""
    try:
        draft_discard(request.user, run, revision=revision_seen(request))
    except DraftConflict as conflict:
        conflict_say(request, conflict, "Not discarded")
        return redirect("control:draft", run.slug)
    messages.success(request, "The draft is discarded. The audit log keeps what it was.")
    return redirect("control:run", run.slug)


@run_desk
@require_POST
def draft_file_view(request: DeskRequest, run: Run) -> HttpResponse:
    """Store a file, and name it in the draft."""
    writer_require(request, run)
    upload = request.FILES.get("artifact")
    if upload is None or upload.size is None or upload.size > MAX_ARTIFACT:
        messages.error(
            request,
            f"Choose a file of at most {MAX_ARTIFACT // 1000} kB; an admin stores larger ones "
            "with manage.py artifact_store.",
        )
    else:
        name = request.POST.get("name", "").strip() or upload.name or ""
        try:
            draft_file_add(request.user, run, upload.read(), name)
            messages.success(request, f"{name} is stored, and the draft names it.")
        except AppError as error:
            if error.code != ErrorCode.BODY_INVALID:
                raise
            messages.error(request, f"Not stored. {error.detail}")
    return redirect(f"{redirect('control:draft', run.slug).url}#files")


@run_desk
@require_POST
def draft_import_view(request: DeskRequest, run: Run) -> HttpResponse:
    """Take a file as the draft, in place of the one that is there."""
    writer_require(request, run)
    upload = request.FILES.get("file")
    try:
        if upload is None:
            raise DraftError("Choose a file.")
        found = config_file_read(upload.read(MAX_FILE + 1), timezone.now())
    except DraftError as error:
        messages.error(request, f"Not imported. {error}")
        return redirect("control:draft", run.slug)
    try:
        draft = draft_import(
            request.user,
            run,
            found.body,
            revision=revision_seen(request),
            based_on=based_on_of(request),
        )
    except DraftConflict as conflict:
        conflict_say(request, conflict, "Not imported")
        return redirect("control:draft", run.slug)
    errors = errors_of(run, draft.body, tasks_allowed())
    wrong = f" {len(errors)} of its values do not fit." if errors else ""
    messages.success(request, f"The file is the draft now. {found.note}{wrong}")
    return redirect("control:draft", run.slug)


@run_desk
@require_safe
def draft_export(request: DeskRequest, run: Run) -> HttpResponse:
    """The draft as a file."""
    draft = draft_of(run)
    if draft is None:
        raise AppError(ErrorCode.NOT_FOUND, "This run has no draft.")
    return _download(f"{run.slug}-draft.json", draft.body)


@run_desk
@require_safe
def config_export(request: DeskRequest, run: Run, version: int, form: str) -> HttpResponse:
    """A published version as a file: plain, or as it was signed."""
    row = run.configs.filter(version=version).first()
    if row is None or form not in ("json", "jws"):
        raise AppError(ErrorCode.NOT_FOUND, "This run has no such version.")
    name = f"{run.slug}-v{version}.{form}"
    return _download(name, row.body) if form == "json" else _download(name, row.jws)


def _draft_context(run: Run, user: User) -> dict[str, Any]:
    draft, newest, tasks = draft_of(run), config_newest(run), tasks_allowed()
    body = draft.body if draft else body_own(newest.body) if newest else {}
    errors = errors_of(run, body, tasks)
    groups = groups_of(body, errors, tasks, title=run.title)
    return {
        "run": run,
        "draft": draft,
        "newest": newest,
        "groups": groups,
        "files": file_rows(body, artifacts_stored(run, user)),
        "errors": errors,
        "elsewhere": errors_elsewhere(errors, groups),
        "revision": draft.revision if draft else 0,
        "based_on": draft.based_on if draft else newest.version if newest else 0,
        "is_behind": draft_is_behind(draft, newest),
    }


def _check_context(run: Run, draft: ConfigDraft) -> dict[str, Any]:
    """Return what the check shows.

    Raises:
        AppError: BODY_INVALID (a file of the draft is not stored here).
    """
    newest = config_newest(run)
    config = config_check(run, draft.body, previous=newest)
    now = timezone.now()
    situation = situation_of(run, config, now)
    findings = lint(config, situation)
    body = config.model_dump(mode="json")
    return {
        "run": run,
        "draft": draft,
        "newest": newest,
        "config": config,
        "findings": findings,
        "num_blockers": len(blockers(findings)),
        "warnings": [f for f in findings if f.severity is Severity.WARNING],
        "diff": config_diff(newest.body, body) if newest else [],
        "is_behind": draft_is_behind(draft, newest),
        "behind": changes_behind(run, draft, newest, body),
        "begins_lineage": begins_lineage(config, situation.previous),
        "dialled": situation.dialled,
        "checked_at": now,
    }


def _conflict_page(
    request: DeskRequest, run: Run, mine: dict[str, Any], theirs: ConfigDraft
) -> HttpResponse:
    files = file_rows(mine, artifacts_stored(run, request.user))
    apart, same = differences(mine, theirs.body, tasks_allowed(), title=run.title)
    context = {
        "run": run,
        "theirs": theirs,
        "apart": apart,
        "same": same,
        "files": [file for file in files if file["is_chosen"]],
        "files_differ": artifacts_of(mine) != artifacts_of(theirs.body),
    }
    return render(request, "control/draft_conflict.html", context, status=409)


def _download(name: str, content: dict[str, Any] | str) -> HttpResponse:
    is_json = not isinstance(content, str)
    text = json.dumps(content, indent=1, ensure_ascii=False) + "\n" if is_json else content
    kind = "application/json" if is_json else "application/jose"
    response = HttpResponse(text, content_type=kind)
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response
