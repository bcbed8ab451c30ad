"""What the forms around a draft send, and what is said when it moved on meanwhile."""

from django.contrib import messages

from training.protocol.errors import ErrorCode
from web.control.access import DeskRequest
from web.core.errors import AppError
from web.runs.lifecycle import OVER
from web.runs.models import Run
from web.runs.selectors import run_is_organised_by
from web.runs.services import DraftConflict


def revision_of(request: DeskRequest) -> int:
    """Return the revision that the form was made of, -1: none that there is."""
    found = _number(request, "revision")
    return -1 if found is None else found


def revision_seen(request: DeskRequest) -> int | None:
    """Return the same, None when the form names none."""
    return revision_of(request) if "revision" in request.POST else None


def based_on_of(request: DeskRequest) -> int | None:
    """Return the version that the form knows of: a tick (``over``) beats the hidden field."""
    ticked = _number(request, "over")
    return _number(request, "based_on") if ticked is None else ticked


def conflict_say(request: DeskRequest, conflict: DraftConflict, what: str) -> None:
    """Tell who was too late what has changed since; ``what`` did not happen."""
    theirs = conflict.theirs
    text = "the draft was changed meanwhile. This is it now."
    if theirs.pk is None:
        text = f"version {theirs.based_on} was published meanwhile. Tick that you know of it."
    messages.warning(request, f"{what}: {text}")


def writer_require(request: DeskRequest, run: Run) -> None:
    """Raise FORBIDDEN or RUN_OVER unless this person may write this run's config now."""
    if not run_is_organised_by(request.user, run):
        raise AppError(ErrorCode.FORBIDDEN, "Only organisers of this run may change its config.")
    if run.state in OVER:
        raise AppError(ErrorCode.RUN_OVER, "A run that is over gets no new config: clone it.")


def _number(request: DeskRequest, name: str) -> int | None:
    text = request.POST.get(name, "")
    return int(text) if text.isdecimal() and len(text) < 10 else None
