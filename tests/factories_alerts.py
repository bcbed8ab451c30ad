"""Alerts for tests; plain functions."""

from typing import Any

from django.utils import timezone

from web.alerts.kinds import AlertKind
from web.alerts.models import Alert, AlertEvent
from web.runs.models import Run


def alert_make(run: Run | None, kind: str = AlertKind.NO_EPOCH, **fields: Any) -> Alert:
    """Return an open alert of a run, or (None) of the site, with the first line of its history."""
    now = timezone.now()
    words = {"severity": "critical", "sentence": "No epoch was finished for 20 min."}
    alert = Alert.objects.create(
        run=run, kind=kind, judged_at=now, opened_at=now, **(words | fields)
    )
    AlertEvent.objects.create(alert=alert, kind="opened", at=now, text=alert.sentence)
    return alert
