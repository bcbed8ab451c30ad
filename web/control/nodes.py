"""Nodes: the machines whose celery workers start processes for the site's runs."""

from collections.abc import Mapping

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from training.protocol.errors import ErrorCode
from web.control.access import DeskRequest, staff_only
from web.control.launch_forms import NodeLimitsForm
from web.core.errors import AppError
from web.workers.models import WorkerNode
from web.workers.node_selectors import node_rows
from web.workers.nodes import node_limits_set
from web.workers.removal import node_forget
from web.workers.room import Limits


@staff_only
@require_safe
def nodes_page(request: DeskRequest) -> HttpResponse:
    """Which nodes are there, how long ago each was heard, what each runs."""
    return _page(request)


@staff_only
@require_safe
def nodes_fragment(request: DeskRequest) -> HttpResponse:
    """The table alone."""
    return render(request, "control/nodes_fragment.html", {"rows": node_rows(timezone.now())})


@staff_only
@require_POST
def node_limits(request: DeskRequest, name: str) -> HttpResponse:
    """Bound what may be launched there."""
    node, form = _get(name), NodeLimitsForm(request.POST, auto_id=f"id_{name}_%s")
    if form.is_valid():
        node_limits_set(request.user, node, Limits(**form.cleaned_data))
        messages.success(request, f"The limits of {name} hold for what is launched from now on.")
        return redirect("control:nodes")
    messages.error(request, f"{name}: limits are whole numbers; an empty one is no limit.")
    return _page(request, {name: form})


@staff_only
@require_POST
def node_remove(request: DeskRequest, name: str) -> HttpResponse:
    """Forget a node that is gone for good, with its managed workers."""
    node_forget(request.user, _get(name), timezone.now())
    messages.success(request, f"{name} is forgotten.")
    return redirect("control:nodes")


def _page(request: DeskRequest, sent: Mapping[str, NodeLimitsForm] | None = None) -> HttpResponse:
    """Return the page of nodes; in a form that was sent stands what was typed."""
    rows, forms = node_rows(timezone.now()), sent or {}
    for row in rows:
        name = row["node"].name
        row["form"] = forms.get(name) or NodeLimitsForm(
            initial=row["limits"].__dict__, auto_id=f"id_{name}_%s"
        )
    return render(request, "control/nodes.html", {"rows": rows}, status=422 if forms else 200)


def _get(name: str) -> WorkerNode:
    node = WorkerNode.objects.filter(name=name).first()
    if node is None:
        raise AppError(ErrorCode.NOT_FOUND, "There is no such node.")
    return node
