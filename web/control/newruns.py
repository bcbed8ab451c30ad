"""New runs: from a preset, a file or another run; and the tasks that they may name."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from training.protocol.errors import ErrorCode
from web.control.access import DeskRequest, run_desk, staff_only
from web.control.run_forms import CloneForm, NewRunForm, TasksForm
from web.core.errors import AppError
from web.runs.catalogue import presets, tasks_built_in
from web.runs.config_file import MAX_FILE, config_file_read
from web.runs.draft_body import DraftError
from web.runs.models import AllowedTask, Run
from web.runs.services import run_clone, run_make, task_allow, task_disallow, task_entries


@staff_only
@require_http_methods(["GET", "HEAD", "POST"])
def run_new(request: DeskRequest) -> HttpResponse:
    """Make a run, as a draft."""
    choices = presets()
    is_post = request.method == "POST"
    form = NewRunForm(
        request.POST if is_post else None, request.FILES if is_post else None, presets=choices
    )
    if is_post and form.is_valid():
        run = _make(request, form)
        if run is not None:
            messages.success(request, f"{run.title} is made. Its config is a draft: look it over.")
            return redirect("control:draft", run.slug)
    return render(request, "control/run_new.html", {"form": form, "presets": choices})


@run_desk
@require_http_methods(["GET", "HEAD", "POST"])
def run_clone_page(request: DeskRequest, run: Run) -> HttpResponse:
    """Make a run like this one."""
    if not request.user.is_staff and not request.user.is_superuser:
        raise AppError(ErrorCode.FORBIDDEN, "Only the site's staff may make runs.")
    form = CloneForm(request.POST if request.method == "POST" else None)
    form.initial = {"title": f"{run.title} again"[:120], "slug": f"{run.slug[:55]}-2"}
    if request.method == "POST" and form.is_valid():
        try:
            clone = run_clone(
                request.user, run, slug=form.cleaned_data["slug"], title=form.cleaned_data["title"]
            )
        except AppError as error:
            _beside(form, error)
        else:
            messages.success(request, f"{clone.title} is made, as a draft.")
            return redirect("control:draft", clone.slug)
    return render(request, "control/run_clone.html", {"run": run, "form": form})


@staff_only
@require_http_methods(["GET", "HEAD", "POST"])
def tasks_page(request: DeskRequest) -> HttpResponse:
    """The tasks that configs may name; an admin allows more."""
    _admin_require(request)
    form = TasksForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        try:
            names = [
                task_allow(request.user, entry).name
                for entry in task_entries(form.cleaned_data["entries"])
                if entry.get("name") not in tasks_built_in()
            ]
        except AppError as error:
            if error.code != ErrorCode.BODY_INVALID:
                raise
            form.add_error("entries", error.detail)
        else:
            words = f"Allowed: {', '.join(names)}." if names else "All of them are built in."
            messages.success(request, words)
            return redirect("control:tasks")
    context = {
        "form": form,
        "allowed": list(AllowedTask.objects.select_related("allowed_by")),
        "built_in": tasks_built_in().values(),
    }
    return render(request, "control/tasks.html", context)


@staff_only
@require_POST
def task_disallow_view(request: DeskRequest, name: str) -> HttpResponse:
    """Let no new config name a task."""
    task_disallow(request.user, name)
    messages.success(request, f"{name} can no longer be named by a new config.")
    return redirect("control:tasks")


def _make(request: DeskRequest, form: NewRunForm) -> Run | None:
    """Return the new run; None when something does not fit, which the form then says."""
    data = form.cleaned_data
    body = next((dict(p.draft) for p in presets() if p.key == data["preset"]), {})
    try:
        if data["file"]:
            found = config_file_read(data["file"].read(MAX_FILE + 1), timezone.now())
            body = found.body
            messages.info(request, found.note)
        return run_make(
            request.user,
            slug=data["slug"],
            title=data["title"],
            summary=data["summary"],
            description=data["description"],
            is_public=data["is_public"],
            join_policy=data["join_policy"] or Run.JoinPolicy.OPEN,
            body=body,
        )
    except DraftError as error:
        form.add_error("file", str(error))
    except AppError as error:
        _beside(form, error)
    return None


def _beside(form: CloneForm, error: AppError) -> None:
    """Put an error of a service beside the field that its text names."""
    if error.code != ErrorCode.BODY_INVALID:
        raise error
    name, _, text = error.detail.partition(": ")
    form.add_error(name if name in form.fields else None, text or error.detail)


def _admin_require(request: DeskRequest) -> None:
    if not request.user.is_superuser:
        raise AppError(ErrorCode.FORBIDDEN, "Only an admin of the site may allow tasks.")
