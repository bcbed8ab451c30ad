"""Writes of alerts: the checks, and what organisers do about what they find."""

import logging
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Any

from django.db import DatabaseError, transaction
from django.utils import timezone

from training.protocol.errors import ErrorCode
from web.accounts.models import User
from web.alerts.gather import disk_gather, facts_gather
from web.alerts.hysteresis import Move, Track, track_step
from web.alerts.kinds import RULES, AlertKind, RuleValues, rule_values, rule_values_check
from web.alerts.models import Alert, AlertEvent, AlertMail, AlertSettings, AlertTrack
from web.alerts.rules import RUN_KINDS, Verdict, disk_judge, run_judge
from web.alerts.selectors import alert_may_handle, values_of
from web.alerts.webhooks import webhooks_queue
from web.core.audit import audit_record
from web.core.errors import AppError
from web.runs.models import Run
from web.runs.selectors import run_is_organised_by
from web.runs.services.runs import organiser_require

logger = logging.getLogger(__name__)
MUTE_MAX = timedelta(days=30)


def alerts_check(now: datetime) -> int:
    """Judge every run and the site; return how many alerts opened or closed.

    One run that cannot be judged, or whose rows cannot be written, does not keep the others from
    being judged.
    """
    moved = _judged("the site", lambda: site_check(now))
    for run in Run.objects.all():
        moved += _judged(f"run {run.slug}", lambda run=run: run_check(run, now))  # type: ignore[misc]
    return moved


def _judged(name: str, check: Callable[[], int]) -> int:
    """Return what a check found; 0 when it fails, which ends only its own transaction."""
    try:
        with transaction.atomic():
            return check()
    except (ArithmeticError, AttributeError, DatabaseError, KeyError, TypeError, ValueError):
        logger.exception("%s: its alerts could not be judged", name)
        return 0


def run_check(run: Run, now: datetime) -> int:
    """Judge one run; return how many alerts opened or closed."""
    facts = facts_gather(run, now)
    if not facts.is_open and not _has_tracks_open(run):
        return 0
    values = values_of(run)
    verdicts = {kind: run_judge(kind, facts, values[kind], now) for kind in RUN_KINDS}
    return _tracks_move(run, verdicts, values, now)


def site_check(now: datetime) -> int:
    """Judge the disk of the data folder."""
    kind = AlertKind.DISK_FILLING
    values = {kind: rule_values(kind)}
    return _tracks_move(None, {kind: disk_judge(*disk_gather(), values[kind])}, values, now)


def _has_tracks_open(run: Run) -> bool:
    return AlertTrack.objects.filter(run=run, is_open=True).exists()


@transaction.atomic
def _tracks_move(
    run: Run | None,
    verdicts: dict[AlertKind, Verdict],
    values: dict[AlertKind, RuleValues],
    now: datetime,
) -> int:
    tracks = _tracks_lock(run, verdicts)
    alerts = {a.kind: a for a in Alert.objects.filter(run=run).exclude(state=Alert.State.CLOSED)}
    moved, changed = 0, []
    for kind, verdict in verdicts.items():
        row = tracks[kind]
        track, move = track_step(
            Track(row.is_open, row.changing_since, row.checked_at),
            verdict.is_bad,
            now,
            opens_seconds=values[kind].opens_seconds,
            closes_seconds=values[kind].closes_seconds,
        )
        row.is_open, row.changing_since = track.is_open, track.changing_since
        row.checked_at = track.checked_at
        changed.append(row)
        moved += move is not Move.NONE
        _alert_move(alerts.get(kind), row, move, verdict, now)
    AlertTrack.objects.bulk_update(changed, ("is_open", "changing_since", "checked_at"))
    return moved


def _tracks_lock(run: Run | None, kinds: Iterable[AlertKind]) -> dict[str, AlertTrack]:
    """Return the tracks of these kinds, locked: two checks at the same time open one alert."""
    rows = AlertTrack.objects.select_for_update().filter(run=run)
    tracks = {row.kind: row for row in rows}
    missing = [AlertTrack(run=run, kind=kind) for kind in kinds if kind not in tracks]
    if missing:  # somebody else may make them at this moment
        AlertTrack.objects.bulk_create(missing, ignore_conflicts=True)
        tracks = {row.kind: row for row in rows.all()}
    return tracks


def _alert_move(
    alert: Alert | None, track: AlertTrack, move: Move, verdict: Verdict, now: datetime
) -> None:
    if move is Move.OPEN and alert is None:
        alert = Alert.objects.create(
            run=track.run,
            kind=track.kind,
            severity=RULES[AlertKind(track.kind)].severity,
            sentence=verdict.sentence[:300],
            evidence=verdict.evidence,
            judged_at=now,
            opened_at=now,
        )
        _event(alert, AlertEvent.Kind.OPENED, now, text=alert.sentence, track=track)
    elif move is Move.CLOSE and alert is not None:
        alert.state, alert.closed_at = Alert.State.CLOSED, now
        alert.save(update_fields=("state", "closed_at"))
        _event(alert, AlertEvent.Kind.CLOSED, now, text=verdict.sentence, track=track)
    elif alert is not None and verdict.is_bad:
        alert.sentence, alert.evidence = verdict.sentence[:300], verdict.evidence
        alert.judged_at = now
        alert.save(update_fields=("sentence", "evidence", "judged_at"))


def _event(
    alert: Alert,
    kind: AlertEvent.Kind,
    now: datetime,
    *,
    text: str,
    actor: User | None = None,
    track: AlertTrack | None = None,
) -> None:
    """Write a line of history; tell webhooks of it, and leave it to the next mail.

    A muted kind tells nobody; the line is written all the same.
    """
    is_muted = track is not None and track.muted_until is not None and track.muted_until > now
    is_mailed = kind in (AlertEvent.Kind.OPENED, AlertEvent.Kind.CLOSED) and not is_muted
    event = AlertEvent.objects.create(
        alert=alert,
        kind=kind,
        at=now,
        actor=actor,
        text=text[:300],
        mailed_at=None if is_mailed else now,
    )
    where = f"run {alert.run.slug}" if alert.run else "the site"
    logger.warning("%s: alert %s %s: %s", where, alert.kind, kind, text)
    if alert.run and not is_muted:
        webhooks_queue(alert, event, now)


@transaction.atomic
def alert_acknowledge(actor: User, alert: Alert, reason: str) -> None:
    """Say that somebody looks after an alert. It goes on being judged, and closes by itself.

    Raises:
        AppError: FORBIDDEN, or BODY_INVALID (no reason, or not open any more).
    """
    _handler_require(actor, alert)
    text = _reason(reason)
    moved = Alert.objects.filter(pk=alert.pk, state=Alert.State.OPEN).update(
        state=Alert.State.ACKNOWLEDGED
    )
    if not moved:
        raise AppError(ErrorCode.BODY_INVALID, "This alert is acknowledged or closed already.")
    alert.state = Alert.State.ACKNOWLEDGED
    _event(alert, AlertEvent.Kind.ACKNOWLEDGED, timezone.now(), text=text, actor=actor)
    _audit(actor, "alert.acknowledged", alert, {"reason": text})


@transaction.atomic
def alert_mute(actor: User, alert: Alert, until: datetime, reason: str) -> None:
    """Tell nobody of this kind of alert in this run until an instant, at most 30 days ahead.

    An instant that is past lifts the mute.

    Raises:
        AppError: FORBIDDEN, or BODY_INVALID (no reason, too long).
    """
    _handler_require(actor, alert)
    text, now = _reason(reason), timezone.now()
    if until > now + MUTE_MAX:
        raise AppError(ErrorCode.BODY_INVALID, f"until: at most {MUTE_MAX.days} days ahead.")
    track, _ = AlertTrack.objects.get_or_create(run=alert.run, kind=alert.kind)
    track = AlertTrack.objects.select_for_update().get(pk=track.pk)
    before, track.muted_until = track.muted_until, until if until > now else None
    track.save(update_fields=("muted_until",))
    line = f"until {until:%Y-%m-%d %H:%M} UTC: {text}" if until > now else f"no longer: {text}"
    _event(alert, AlertEvent.Kind.MUTED, now, text=line, actor=actor)
    data = {
        "reason": text,
        "before": {"muted_until": before.isoformat() if before else None},
        "after": {"muted_until": track.muted_until.isoformat() if track.muted_until else None},
    }
    _audit(actor, "alert.muted", alert, data)


@transaction.atomic
def alert_settings_change(
    actor: User, run: Run, values: dict[AlertKind, RuleValues]
) -> AlertSettings:
    """Keep what differs from the defaults.

    Raises:
        AppError: FORBIDDEN or BODY_INVALID, with the rule that is wrong.
    """
    organiser_require(actor, run)
    for kind, value in values.items():
        wrong = rule_values_check(kind, value)
        if wrong:
            raise AppError(ErrorCode.BODY_INVALID, wrong)
    changed = {k: v.as_json() for k, v in values.items() if v != rule_values(k)}
    AlertSettings.objects.get_or_create(run=run)
    row = AlertSettings.objects.select_for_update().get(run=run)
    before, row.changed = row.changed, changed
    if before != changed:
        row.save(update_fields=("changed",))
        data = {"before": before, "after": changed}
        audit_record(actor, "alert.settings.changed", run.slug, data)
    return row


@transaction.atomic
def alert_mail_set(actor: User, run: Run | None, *, is_wanted: bool) -> None:
    """Say whether the actor wants the alerts of a run (None: of the site) by mail.

    Raises:
        AppError: FORBIDDEN, or BODY_INVALID (the account has no address).
    """
    allowed = run_is_organised_by(actor, run) if run else actor.is_staff
    if not allowed:
        raise AppError(ErrorCode.FORBIDDEN, "Only organisers of this run get its alerts.")
    if is_wanted and not actor.email:
        text = "Your account has no e-mail address: add one on your account's page, then ask again."
        raise AppError(ErrorCode.BODY_INVALID, text)
    mails = AlertMail.objects.filter(run=run, user=actor)
    was_wanted = mails.exists()
    if was_wanted == is_wanted:
        return
    if is_wanted:
        AlertMail.objects.get_or_create(run=run, user=actor)
    else:
        mails.delete()
    slug = run.slug if run else ""
    data = {"before": {"mailed": was_wanted}, "after": {"mailed": is_wanted}}
    audit_record(actor, "alert.mail.set", slug or "site", data, run=slug)


def _handler_require(actor: User, alert: Alert) -> None:
    if not alert_may_handle(actor, alert.run):
        raise AppError(ErrorCode.FORBIDDEN, "Only organisers of this run may do this.")


def _reason(reason: str) -> str:
    if not reason.strip():
        raise AppError(ErrorCode.BODY_INVALID, "reason: say why.")
    return reason.strip()[:200]


def _audit(actor: User, code: str, alert: Alert, data: dict[str, Any]) -> None:
    slug = alert.run.slug if alert.run else ""
    target = f"{slug or 'site'}/{alert.public_id}"
    audit_record(actor, code, target, {"kind": alert.kind, **data}, run=slug)
