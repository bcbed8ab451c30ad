"""Who has which role in a run; the queue of what waits for them."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from training.protocol.errors import ErrorCode
from web.control.access import DeskRequest, run_desk, run_desk_for
from web.control.context import desk_of
from web.control.forms import ReasonForm, RoleForm
from web.control.people import person_find, person_get
from web.control.queue import KINDS, Kind
from web.core.errors import AppError
from web.runs.models import Run, RunMember
from web.runs.roles import DESK_PARTS, ROLE_TEXTS, Right
from web.runs.services import run_member_add, run_member_remove

_SHOWN = 500


@run_desk
@require_safe
def roles_page(request: DeskRequest, run: Run) -> HttpResponse:
    """People with a role, what each role means, and a form to give one."""
    return render(request, "control/roles.html", _context(request, run, RoleForm()))


@run_desk_for(Right.ROLES)
@require_http_methods(["POST"])
def role_give(request: DeskRequest, run: Run) -> HttpResponse:
    """Give somebody a role, instead of the one that they had."""
    form = RoleForm(request.POST)
    if form.is_valid():
        data = form.cleaned_data
        person = person_find(data["username"])
        if person is not None:
            run_member_add(request.user, run, person, data["part"], reason=data["reason"])
            messages.success(request, f"{person.username} is {data['part']} of {run.title} now.")
            return redirect("control:roles", run.slug)
        form.add_error("username", "Nobody here has this name: it is the one of their account.")
    return render(request, "control/roles.html", _context(request, run, form))


@run_desk_for(Right.ROLES)
@require_http_methods(["GET", "HEAD", "POST"])
def role_take(request: DeskRequest, run: Run, username: str) -> HttpResponse:
    """Say what is lost; then take the role."""
    person = person_get(username)
    form = ReasonForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        run_member_remove(request.user, run, person, reason=form.cleaned_data["reason"])
        messages.success(request, f"{person.username} has no role in {run.title} any more.")
        mine = person == request.user and not request.user.is_staff
        return redirect("pages:home") if mine else redirect("control:roles", run.slug)
    member = run.members.filter(user=person).first()
    if member is None and run.organiser_id != person.pk:
        raise AppError(ErrorCode.NOT_FOUND, f"{person.username} has no role in this run.")
    part = RunMember.Part.ORGANISER if run.organiser_id == person.pk else member and member.part
    context = {"run": run, "person": person, "part": part, "form": form}
    return render(request, "control/role_take.html", context)


@login_required
@require_safe
def queue_page(request: DeskRequest) -> HttpResponse:
    """Everything that waits in the visitor's runs; ``?kind=`` and ``?run=`` narrow it."""
    desk = desk_of(request)
    if not desk.is_open:
        raise AppError(ErrorCode.FORBIDDEN, "You have no role in any run.")
    kind, slug = request.GET.get("kind", ""), request.GET.get("run", "")
    items = desk.items
    counts = {name: sum(item.kind == name for item in items) for name in Kind}
    shown = [
        item
        for item in items
        if (not kind or item.kind == kind) and (not slug or (item.run and item.run.slug == slug))
    ]
    context = {
        "items": shown,
        "kind": kind,
        "kinds": [(name, label, counts[name]) for name, label in KINDS.items()],
        "total": len(items),
    }
    return render(request, "control/queue.html", context)


def _context(request: DeskRequest, run: Run, form: RoleForm) -> dict[str, object]:
    members = run.members.select_related("user").exclude(user=run.organiser_id)
    seats = members.filter(part__in=DESK_PARTS).order_by("part", "user__username")[:_SHOWN]
    return {
        "run": run,
        "form": form,
        "seats": list(seats),
        "volunteers": list(
            members.filter(part=RunMember.Part.VOLUNTEER).order_by("user__username")[:_SHOWN]
        ),
        "num_volunteers": members.filter(part=RunMember.Part.VOLUNTEER).count(),
        "texts": [(role.value, text) for role, text in ROLE_TEXTS.items()],
        "may_give": Right.ROLES in request.rights,
        "is_founder": run.organiser_id == request.user.pk or request.user.is_superuser,
    }
