"""Asking to join a run that wants to be asked, and the answer."""

from django.db import transaction
from django.utils import timezone

from training.protocol.errors import ErrorCode
from web.accounts.models import User
from web.core.audit import audit_record, reason_require
from web.core.errors import AppError
from web.runs.draft_body import DraftError, text_check
from web.runs.lifecycle import OVER
from web.runs.models import Run, RunJoinRequest
from web.runs.request_selectors import approval_is_missing, asks_again_at, join_request_of
from web.runs.roles import Right
from web.runs.selectors import bar_of, bar_refuse, right_require

MAX_TEXT = 300
_State = RunJoinRequest.State


@transaction.atomic
def join_request_make(user: User, run: Run, text: str) -> RunJoinRequest:
    """Ask to join; asking again while it waits changes the text only.

    Raises:
        AppError: BANNED, BARRED, RUN_OVER, FORBIDDEN (refused less than a day ago) or
            BODY_INVALID (no need to ask, or a text that is too long).
    """
    if user.is_banned:
        raise AppError(ErrorCode.BANNED, user.ban_text)
    words = _text_clean("text", text)
    row = Run.objects.select_for_update().get(pk=run.pk)
    bar_refuse(row, user)
    if row.state in OVER:
        raise AppError(ErrorCode.RUN_OVER)
    if not approval_is_missing(row, user):
        raise AppError(ErrorCode.BODY_INVALID, "You may join this run without asking.")
    asked, now = join_request_of(row, user), timezone.now()
    again_at = asks_again_at(asked)
    if again_at is not None and now < again_at:
        raise AppError(
            ErrorCode.FORBIDDEN, f"You may ask again from {again_at:%Y-%m-%d %H:%M} UTC on."
        )
    if asked is None:
        asked = RunJoinRequest(run=row, user=user)
    if asked.state != _State.PENDING or asked.pk is None:
        asked.asked_at, asked.state = now, _State.PENDING
        asked.decided_by, asked.decided_at, asked.reason = None, None, ""
    elif asked.text == words:
        return asked  # sent twice
    asked.text = words
    asked.save()
    audit_record(user, "run.join.asked", f"{row.slug}/{user.username}", {"text": words})
    return asked


@transaction.atomic
def join_request_approve(
    actor: User,
    asked: RunJoinRequest,
    reason: str = "",
    *,
    seen: str = "",
    words: str | None = None,
) -> None:
    """Let the person join, also one who was refused before; they join when they want to.

    ``seen`` and ``words`` are the state and the text that the moderator read; empty and None do
    not compare.

    Raises:
        AppError: FORBIDDEN, BODY_INVALID (decided meanwhile, or approved already), or BANNED or
            BARRED (the person: a yes would promise what does not hold).
    """
    _decide(actor, asked, _State.APPROVED, _text_clean("reason", reason), seen, words)


@transaction.atomic
def join_request_refuse(
    actor: User, asked: RunJoinRequest, reason: str, *, seen: str = "", words: str | None = None
) -> None:
    """Say no, with a reason that the person reads. Whoever was approved is barred instead.

    ``seen`` and ``words`` as in :func:`join_request_approve`.

    Raises:
        AppError: FORBIDDEN or BODY_INVALID (no reason, decided already, or other words now).
    """
    why = _text_clean("reason", reason_require(reason))
    _decide(actor, asked, _State.REFUSED, why, seen, words)


@transaction.atomic
def join_request_withdraw(user: User, run: Run) -> None:
    """Take one's own request back while nobody has decided; the audit log keeps what it said.

    Raises:
        AppError: BODY_INVALID (none of this person's waits).
    """
    row = Run.objects.select_for_update().get(pk=run.pk)
    asked = join_request_of(row, user)
    if asked is None or asked.state != _State.PENDING:
        raise AppError(ErrorCode.BODY_INVALID, "No request of yours waits for a decision.")
    asked.delete()
    data = {"text": asked.text}
    audit_record(user, "run.join.withdrawn", f"{row.slug}/{user.username}", data)


def _decide(
    actor: User,
    asked: RunJoinRequest,
    state: str,
    reason: str,
    seen: str,
    words: str | None,
) -> None:
    run = Run.objects.select_for_update().get(pk=asked.run_id)
    right_require(actor, run, Right.MODERATE)
    row = RunJoinRequest.objects.select_related("user").filter(pk=asked.pk).first()
    if row is None:
        raise AppError(ErrorCode.BODY_INVALID, "This request was withdrawn meanwhile.")
    is_refusal_late = state == _State.REFUSED and row.state != _State.PENDING
    is_other = bool(seen) and row.state != seen
    if row.state == _State.APPROVED or is_refusal_late or is_other:
        raise AppError(ErrorCode.BODY_INVALID, "This request is decided already.")
    if words is not None and row.text != words:
        text = "They have written something else meanwhile: read it before you decide."
        raise AppError(ErrorCode.BODY_INVALID, text)
    if state == _State.APPROVED:
        _welcome_require(run, row.user)
    row.state, row.reason = state, reason
    row.decided_by, row.decided_at = actor, timezone.now()
    row.save()
    data = {"reason": reason, "text": row.text}
    audit_record(actor, f"run.join.{state}", f"{run.slug}/{row.user.username}", data)


def _welcome_require(run: Run, user: User) -> None:
    """Raise BANNED or BARRED, in words for the moderator, when the person is shut out."""
    if user.is_banned:
        raise AppError(ErrorCode.BANNED, f"{user.username} is banned from this site.")
    if bar_of(run, user) is not None:
        raise AppError(ErrorCode.BARRED, f"{user.username} is barred here: lift the bar first.")


def _text_clean(name: str, text: str) -> str:
    words = " ".join(text.split())
    if len(words) > MAX_TEXT:
        raise AppError(ErrorCode.BODY_INVALID, f"{name}: at most {MAX_TEXT} characters.")
    try:
        text_check(words)
    except DraftError as error:
        raise AppError(ErrorCode.BODY_INVALID, f"{name}: {error}") from error
    return words
