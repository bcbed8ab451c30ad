"""What a moderator does with one peer: said first, then done."""

from collections.abc import Callable
from dataclasses import dataclass

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from training.protocol.errors import ErrorCode
from training.protocol.states import Role
from web.accounts.models import Device
from web.contributions.models import Suspicion
from web.contributions.quarantine import device_quarantine
from web.control.access import DeskRequest, run_desk_for
from web.control.forms import BarForm, MessageForm, PeerReasonForm
from web.core.errors import AppError
from web.monitoring.models import Peer
from web.monitoring.services import peer_message_send, peer_pause, peer_resume
from web.runs.models import Run, RunDeviceBar
from web.runs.roles import Right
from web.runs.services import run_device_bar_add, run_device_bar_lift

Form = MessageForm | PeerReasonForm | BarForm


@dataclass(frozen=True)
class Act:
    """Something to do with a peer."""

    label: str
    """Of button and title, with the machine's name."""
    effect: tuple[str, ...]
    """What it will do, in sentences."""
    form: type[MessageForm] | type[PeerReasonForm] | type[BarForm]
    do: Callable[[DeskRequest, Peer, Form], None]
    done: str
    is_bad: bool = False


def _message(request: DeskRequest, peer: Peer, form: Form) -> None:
    peer_message_send(request.user, peer, form.cleaned_data["text"])


def _pause(request: DeskRequest, peer: Peer, form: Form) -> None:
    peer_pause(request.user, peer, form.cleaned_data["reason"])


def _resume(request: DeskRequest, peer: Peer, form: Form) -> None:
    peer_resume(request.user, peer, form.cleaned_data["reason"])


def _quarantine(request: DeskRequest, peer: Peer, form: Form) -> None:
    device_quarantine(request.user, peer.run, peer.device, form.cleaned_data["reason"])


def _bar(request: DeskRequest, peer: Peer, form: Form) -> None:
    if isinstance(form, BarForm):
        run_device_bar_add(
            request.user, peer.run, peer.device, form.cleaned_data["reason"],
            expires_at=form.expires_at(),
        )  # fmt: skip


ACTS = {
    "message": Act(
        "Write to",
        (
            "The message reaches the trainer with its next heartbeat and is shown in its terminal.",
            "Its owner also sees it on their page of devices, with your name.",
        ),
        MessageForm,
        _message,
        "The message waits for the next heartbeat.",
    ),
    "pause": Act(
        "Pause",
        (
            "From its next heartbeat on the trainer computes nothing and stays connected.",
            "The run goes on without it. What it gave stays counted.",
        ),
        PeerReasonForm,
        _pause,
        "It rests from its next heartbeat on.",
    ),
    "resume": Act(
        "Resume",
        ("The trainer goes on at its next heartbeat, unless the whole run is paused.",),
        PeerReasonForm,
        _resume,
        "It goes on at its next heartbeat.",
    ),
    "quarantine": Act(
        "Quarantine",
        (
            "It goes on training and averaging, and all its new work is provisional.",
            "A decision in the queue releases it: confirms or rejects what waited.",
            "Its owner sees on the page “Is my work counted?” that it waits for a moderator.",
        ),
        PeerReasonForm,
        _quarantine,
        "Its new work waits for a decision.",
    ),
    "shut-out": Act(
        "Shut out",
        (
            "It gets no pass for this run and goes on the revocation list: the swarm refuses it "
            "within seconds.",
            "Its owner's other machines, and its other runs, go on.",
            "Counted samples stay counted. You can let it in again.",
        ),
        BarForm,
        _bar,
        "It is shut out of the run.",
        is_bad=True,
    ),
}


def peer_get(run: Run, public_id: str) -> Peer:
    """Return one of the run's peers.

    Raises:
        AppError: NOT_FOUND.
    """
    rows = run.peers.select_related("device__user", "run")
    peer = rows.filter(public_id=public_id).first()
    if peer is None:
        raise AppError(ErrorCode.NOT_FOUND, "This run has no such peer.")
    return peer


def acts_of(peer: Peer, *, is_held: bool, is_out: bool) -> list[tuple[str, Act]]:
    """Return what may be done with a peer as it is now."""
    names: list[str] = []
    if peer.role != Role.COORDINATOR:
        names += ["message", "resume" if peer.paused_at else "pause"]
        if not is_held:
            names.append("quarantine")
        if not peer.device.user.is_service and not is_out:
            names.append("shut-out")
    return [(name, ACTS[name]) for name in names]


def _offered_require(peer: Peer, act: str) -> None:
    """Refuse what the peer's page does not offer now, as from an old page.

    Raises:
        AppError: BODY_INVALID; FORBIDDEN for shutting out a coordinator or the site's machines.
    """
    held = Suspicion.objects.filter(
        run=peer.run, device=peer.device, state=Suspicion.State.OPEN
    ).exists()
    is_out = RunDeviceBar.objects.filter(run=peer.run, device=peer.device).exists()
    if act in dict(acts_of(peer, is_held=held, is_out=is_out)):
        return
    if act == "shut-out" and not is_out:
        raise AppError(
            ErrorCode.FORBIDDEN,
            "Coordinators and the site's own machines cannot be shut out: stop them instead.",
        )
    if peer.role == Role.COORDINATOR:
        raise AppError(ErrorCode.BODY_INVALID, "That cannot be done with a coordinator.")
    raise AppError(ErrorCode.BODY_INVALID, "This was done already: look at the peer's page.")


@run_desk_for(Right.MODERATE)
@require_http_methods(["GET", "HEAD", "POST"])
def peer_act(request: DeskRequest, run: Run, peer: str, act: str) -> HttpResponse:
    """Say what an act will do; then do it."""
    row, chosen = peer_get(run, peer), ACTS.get(act)
    if chosen is None:
        raise AppError(ErrorCode.NOT_FOUND, "Nothing of that kind can be done with a peer.")
    _offered_require(row, act)
    form = chosen.form(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        chosen.do(request, row, form)
        messages.success(request, f"{row.device.name}: {chosen.done}")
        return redirect("control:peer", run.slug, row.public_id)
    context = {"run": run, "peer": row, "act": chosen, "form": form}
    return render(request, "control/peer_act.html", context)


@run_desk_for(Right.MODERATE)
@require_POST
def device_unbar(request: DeskRequest, run: Run, public_id: str) -> HttpResponse:
    """Let a machine in again."""
    device = Device.objects.filter(public_id=public_id).first()
    if device is None:
        raise AppError(ErrorCode.NOT_FOUND, "There is no such device.")
    run_device_bar_lift(request.user, run, device)
    messages.success(request, f"{device.name} may join {run.title} again.")
    return redirect("control:peers", run.slug)
