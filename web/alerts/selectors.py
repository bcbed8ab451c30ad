"""Reads of alerts."""

from collections.abc import Iterable
from datetime import datetime

from django.db.models import Count, QuerySet

from web.accounts.models import User
from web.alerts.kinds import AlertKind, RuleValues, rule_values
from web.alerts.models import Alert, AlertSettings, AlertTrack
from web.runs.models import Run
from web.runs.selectors import run_is_organised_by


def values_of(run: Run) -> dict[AlertKind, RuleValues]:
    """Return every rule as it holds for a run."""
    row = AlertSettings.objects.filter(run=run).first()
    changed = row.changed if row else {}
    return {kind: rule_values(kind, changed.get(kind)) for kind in AlertKind}


def alert_may_handle(actor: User, run: Run | None) -> bool:
    """Whether somebody may acknowledge and mute alerts of a run, or (None) of the site."""
    return run_is_organised_by(actor, run) if run else actor.is_staff


def alerts_open(runs: "Iterable[Run] | QuerySet[Run]", *, with_site: bool) -> QuerySet[Alert]:
    """Return alerts that are not closed, the newest first; ``with_site``: also the site's own."""
    rows = Alert.objects.exclude(state=Alert.State.CLOSED).select_related("run")
    of_runs = rows.filter(run__in=runs)
    return (of_runs | rows.filter(run=None)) if with_site else of_runs


def alerts_count(runs: "Iterable[Run] | QuerySet[Run]", *, with_site: bool) -> int:
    """Return how many alerts nobody has acknowledged."""
    return alerts_open(runs, with_site=with_site).filter(state=Alert.State.OPEN).count()


def alerts_by_kind(*, is_public: bool) -> list[tuple[str, str, str, int]]:
    """Return (run, kind, severity, number) of alerts that are not closed."""
    alerts = Alert.objects.exclude(state=Alert.State.CLOSED).filter(run__is_public=is_public)
    rows = alerts.order_by().values_list("run__slug", "kind", "severity").annotate(num=Count("pk"))
    return [(str(run), kind, severity, num) for run, kind, severity, num in rows]


def muted_until(alerts: Iterable[Alert], now: datetime) -> dict[tuple[int | None, str], datetime]:
    """Return until when kinds are muted, by (run id, kind), of those that are."""
    runs = {alert.run_id for alert in alerts}
    rows = AlertTrack.objects.filter(muted_until__gt=now)
    return {
        (row.run_id, row.kind): row.muted_until
        for row in rows
        if row.run_id in runs and row.muted_until
    }
