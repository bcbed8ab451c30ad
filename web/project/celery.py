"""Celery: short jobs only. The whole schedule stands here, but for the nodes' looks (nodes.py)."""

import os

from celery import Celery
from celery.schedules import crontab

from web.project.nodes import NodeLooks

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "web.project.settings")

app = Celery("beeyard")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()

app.steps["worker"].add(NodeLooks)

QUEUES = ("default", "mail", "launch")
"""Of the site; each node has one more, which only it consumes."""
app.conf.task_routes = {
    "web.workers.tasks.*": {"queue": "launch"},
    "web.accounts.tasks.*": {"queue": "mail"},
    "web.alerts.tasks.alerts_mail_task": {"queue": "mail"},
    "web.alerts.tasks.webhook_deliver_task": {"queue": "mail"},
}
app.conf.broker_transport_options = {
    # An unacknowledged job is delivered again after this: longer than any job may take.
    "visibility_timeout": 600,
    "socket_keepalive": True,
    "health_check_interval": 10,
}
app.conf.broker_connection_max_retries = None  # Redis may be away for as long as it likes
app.conf.worker_cancel_long_running_tasks_on_connection_loss = True

# A job that waited longer than its period is dropped: the next one does its work.
app.conf.beat_schedule = {
    "pulse": {"task": "web.core.tasks.pulse_task", "schedule": 10.0, "options": {"expires": 10}},
    "live-states": {
        "task": "web.monitoring.tasks.live_states_refresh_task",
        "schedule": 10.0,
        "options": {"expires": 10},
    },
    "points-rollup": {
        "task": "web.monitoring.tasks.points_rollup_task",
        "schedule": 60.0,
        "options": {"expires": 60},
    },
    "points-prune": {
        "task": "web.monitoring.tasks.points_prune_task",
        "schedule": crontab(minute="17"),
    },
    "evidence-settle": {
        "task": "web.contributions.tasks.evidence_settle_task",
        "schedule": 30.0,
        "options": {"expires": 30},
    },
    "alerts-check": {
        "task": "web.alerts.tasks.alerts_check_task",
        "schedule": 15.0,
        "options": {"expires": 15},
    },
    "alerts-dial": {
        "task": "web.alerts.tasks.bootstraps_dial_task",
        "schedule": 60.0,
        "options": {"expires": 60},
    },
    "alerts-mail": {
        "task": "web.alerts.tasks.alerts_mail_task",
        "schedule": 60.0,
        "options": {"expires": 60},
    },
    "webhooks-deliver": {
        "task": "web.alerts.tasks.webhooks_deliver_task",
        "schedule": 10.0,
        "options": {"expires": 10},
    },
    "deliveries-prune": {
        "task": "web.alerts.tasks.deliveries_prune_task",
        "schedule": crontab(minute="11", hour="4"),
    },
    "ledger-check": {
        "task": "web.contributions.tasks.ledger_check_task",
        "schedule": crontab(minute="43", hour="3"),
    },
    "runs-resume": {
        "task": "web.runs.tasks.runs_resume_due_task",
        "schedule": 10.0,
        "options": {"expires": 10},
    },
    "bans-expire": {
        "task": "web.accounts.tasks.bans_expire_task",
        "schedule": 60.0,
        "options": {"expires": 60},
    },
    "bars-expire": {
        "task": "web.runs.tasks.bars_expire_task",
        "schedule": 60.0,
        "options": {"expires": 60},
    },
    "audit-check": {
        "task": "web.core.tasks.audit_check_task",
        "schedule": crontab(minute="53", hour="3"),
    },
    "configs-resign": {
        "task": "web.runs.tasks.configs_resign_task",
        "schedule": crontab(minute="31", hour="*/6"),
    },
}
