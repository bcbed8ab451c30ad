"""Alerts with their history, what each run wants to be told, and where it is told."""

from urllib.parse import urlsplit

from django.conf import settings
from django.db import models

from web.accounts.models import public_id_make
from web.alerts.kinds import RULES, AlertKind, Severity

KINDS = [(kind.value, RULES[kind].title) for kind in AlertKind]


class AlertSettings(models.Model):
    """What a run changed of the rules' defaults, by kind (``RuleValues.as_json``)."""

    run = models.OneToOneField("runs.Run", on_delete=models.CASCADE, related_name="alert_settings")
    changed = models.JSONField(default=dict, blank=True)

    class Meta:
        verbose_name_plural = "alert settings"

    def __str__(self) -> str:
        return f"alert settings of {self.run_id}"


class AlertTrack(models.Model):
    """Where the hysteresis of one rule stands. ``run`` None: the site itself."""

    run = models.ForeignKey(
        "runs.Run", on_delete=models.CASCADE, null=True, related_name="alert_tracks"
    )
    kind = models.CharField(max_length=30, choices=KINDS)
    is_open = models.BooleanField(default=False)
    changing_since = models.DateTimeField(null=True, blank=True)
    checked_at = models.DateTimeField(null=True, blank=True)
    muted_until = models.DateTimeField(null=True, blank=True)
    """Until then nobody is told when alerts of this kind open or close."""

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("run", "kind"), name="one_track_per_run_and_kind"),
            models.UniqueConstraint(
                fields=("kind",), condition=models.Q(run=None), name="one_track_per_site_kind"
            ),
        )

    def __str__(self) -> str:
        return f"{self.kind} of {self.run_id or 'the site'}"


class Alert(models.Model):
    """Something that was wrong for some time: open, acknowledged, closed."""

    class State(models.TextChoices):
        OPEN = "open", "Open"
        ACKNOWLEDGED = "acknowledged", "Acknowledged"
        CLOSED = "closed", "Closed"

    public_id = models.CharField(max_length=12, unique=True, default=public_id_make)
    run = models.ForeignKey("runs.Run", on_delete=models.CASCADE, null=True, related_name="alerts")
    kind = models.CharField(max_length=30, choices=KINDS)
    severity = models.CharField(max_length=10, choices=[(s.value, s.value) for s in Severity])
    state = models.CharField(max_length=15, choices=State.choices, default=State.OPEN)
    sentence = models.CharField(max_length=300)
    evidence = models.JSONField(default=dict, blank=True)
    judged_at = models.DateTimeField()
    """When sentence and evidence were newest."""
    opened_at = models.DateTimeField()
    closed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-opened_at", "-id")
        constraints = (
            models.UniqueConstraint(
                fields=("run", "kind"),
                condition=~models.Q(state="closed"),
                name="one_open_alert_per_run_and_kind",
            ),
            models.UniqueConstraint(
                fields=("kind",),
                condition=models.Q(run=None) & ~models.Q(state="closed"),
                name="one_open_alert_per_site_kind",
            ),
        )
        indexes = (models.Index(fields=("run", "-opened_at"), name="alerts_by_run"),)

    def __str__(self) -> str:
        return f"{self.kind} {self.state}"

    @property
    def title(self) -> str:
        return RULES[AlertKind(self.kind)].title

    @property
    def remedy(self) -> str:
        return RULES[AlertKind(self.kind)].remedy

    @property
    def is_closed(self) -> bool:
        return self.state == self.State.CLOSED


class AlertEvent(models.Model):
    """One line of an alert's history; those that are to be mailed wait until ``mailed_at``.

    Whoever mails them claims them first, for a time: what is not told then is tried again.
    """

    class Kind(models.TextChoices):
        OPENED = "opened"
        ACKNOWLEDGED = "acknowledged"
        MUTED = "muted"
        CLOSED = "closed"

    alert = models.ForeignKey(Alert, on_delete=models.CASCADE, related_name="events")
    kind = models.CharField(max_length=15, choices=Kind.choices)
    at = models.DateTimeField()
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    """None: the site."""
    text = models.CharField(max_length=300, default="", blank=True)
    mailed_at = models.DateTimeField(null=True, blank=True)
    """Everybody was told, or it was given up."""
    mailed_to = models.JSONField(default=list, blank=True)
    """Accounts that were told, by primary key, while others were not yet."""
    mail_claim = models.CharField(max_length=16, default="", blank=True)
    mail_after = models.DateTimeField(null=True, blank=True)
    """Not before."""
    num_mail_tries = models.PositiveSmallIntegerField(default=0)

    class Meta:
        ordering = ("id",)
        indexes = (
            models.Index(
                fields=("id",), condition=models.Q(mailed_at=None), name="alert_events_to_mail"
            ),
        )

    def __str__(self) -> str:
        return f"{self.alert_id} {self.kind}"


class AlertMail(models.Model):
    """An organiser who wants a run's alerts by mail. ``run`` None: the site's own alerts."""

    run = models.ForeignKey(
        "runs.Run", on_delete=models.CASCADE, null=True, related_name="alert_mails"
    )
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="alert_mails"
    )

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("run", "user"), name="one_mail_per_run_and_user"),
            models.UniqueConstraint(
                fields=("user",), condition=models.Q(run=None), name="one_site_mail_per_user"
            ),
        )

    def __str__(self) -> str:
        return f"{self.user_id} for {self.run_id or 'the site'}"


class Webhook(models.Model):
    """An address that is told of a run's alerts, and the secret that signs what it is told."""

    public_id = models.CharField(max_length=12, unique=True, default=public_id_make)
    run = models.ForeignKey("runs.Run", on_delete=models.CASCADE, related_name="webhooks")
    url = models.CharField(max_length=500)
    secret = models.TextField()
    """Encrypted with the site's key for webhooks (``web.alerts.sealed``)."""
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    created_at = models.DateTimeField()
    num_failed = models.PositiveIntegerField(default=0)
    """Deliveries given up in a row."""
    disabled_at = models.DateTimeField(null=True, blank=True)
    disabled_reason = models.CharField(max_length=200, default="", blank=True)

    class Meta:
        ordering = ("id",)

    def __str__(self) -> str:
        return f"webhook {self.public_id} of {self.run_id}"

    @property
    def host(self) -> str:
        """Where it leads, for people who may not know the whole address: paths hold secrets."""
        return f"{urlsplit(self.url).hostname or 'unreadable address'}/…"


class WebhookDelivery(models.Model):
    """One message to one webhook, and how it went."""

    class State(models.TextChoices):
        WAITING = "waiting", "Waiting"
        DELIVERED = "delivered", "Delivered"
        GIVEN_UP = "given_up", "Given up"

    public_id = models.CharField(max_length=12, unique=True, default=public_id_make)
    webhook = models.ForeignKey(Webhook, on_delete=models.CASCADE, related_name="deliveries")
    event = models.CharField(max_length=40)
    """Such as ``alert.opened``."""
    body = models.JSONField()
    state = models.CharField(max_length=10, choices=State.choices, default=State.WAITING)
    num_attempts = models.PositiveIntegerField(default=0)
    next_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField()
    attempted_at = models.DateTimeField(null=True, blank=True)
    status = models.PositiveIntegerField(null=True, blank=True)
    """Of the last HTTP answer."""
    outcome = models.CharField(max_length=200, default="", blank=True)
    seconds = models.FloatField(null=True, blank=True)

    class Meta:
        verbose_name_plural = "webhook deliveries"
        ordering = ("-id",)
        indexes = (models.Index(fields=("state", "next_at"), name="deliveries_due"),)

    def __str__(self) -> str:
        return f"{self.event} {self.state}"
