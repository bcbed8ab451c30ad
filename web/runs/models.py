"""Runs, their signed configs, and what belongs to them."""

from datetime import datetime

from django.conf import settings
from django.db import models

from training.protocol.states import RunState

RUN_STATES = [(state.value, state.value) for state in RunState]


def _until(at: datetime | None) -> str:
    return f" until {at:%Y-%m-%d %H:%M} UTC" if at else ""


class Run(models.Model):
    """One collaborative training. ``live_seq`` numbers everything that its page is told."""

    class JoinPolicy(models.TextChoices):
        OPEN = "open", "Everybody who sees the run may join"
        APPROVAL = "approval", "People ask, and a moderator decides"

    slug = models.SlugField(max_length=60, unique=True)
    title = models.CharField(max_length=120)
    summary = models.CharField(max_length=300, default="", blank=True)
    description = models.TextField(default="", blank=True)
    organiser = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="runs_organised"
    )
    is_public = models.BooleanField(default=True)
    join_policy = models.CharField(
        max_length=20, choices=JoinPolicy.choices, default=JoinPolicy.OPEN
    )
    state = models.CharField(max_length=20, choices=RUN_STATES, default=RunState.DRAFT)
    state_reason = models.CharField(max_length=300, default="", blank=True)
    state_changed_at = models.DateTimeField(auto_now_add=True)
    state_until = models.DateTimeField(null=True, blank=True)
    """When a pause ends by itself; None: when an organiser says so."""
    live_seq = models.PositiveBigIntegerField(default=0)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("id",)
        constraints = (
            models.CheckConstraint(
                condition=models.Q(state__in=[s.value for s in RunState]),
                name="run_state_is_known",
            ),
        )

    def __str__(self) -> str:
        return self.slug

    @property
    def is_open_to_all(self) -> bool:
        """Whether people without a part in it see it: it is public, and no draft any more."""
        return self.is_public and self.state != RunState.DRAFT


class RunMember(models.Model):
    """A person with a part in a run (:mod:`web.runs.roles`); only these see a private one."""

    class Part(models.TextChoices):
        ORGANISER = "organiser"
        MODERATOR = "moderator"
        VIEWER = "viewer"
        VOLUNTEER = "volunteer"

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="members")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="run_parts"
    )
    part = models.CharField(max_length=20, choices=Part.choices)
    joined_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("run", "user"), name="one_part_per_run_and_user"),
        )

    def __str__(self) -> str:
        return f"{self.user_id} {self.part} {self.run_id}"


class RunBar(models.Model):
    """A person whom an organiser has shut out of one run. What they gave to it stays counted."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="bars")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="run_bars"
    )
    reason = models.CharField(max_length=300)
    barred_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    barred_at = models.DateTimeField()
    expires_at = models.DateTimeField(null=True, blank=True, db_index=True)
    """When the site lifts it by itself; None: never."""

    class Meta:
        ordering = ("-barred_at",)
        constraints = (
            models.UniqueConstraint(fields=("run", "user"), name="one_bar_per_run_and_user"),
        )

    def __str__(self) -> str:
        return f"{self.user_id} barred from {self.run_id}"

    @property
    def text(self) -> str:
        """The bar in words for the person."""
        return f"You are barred from this run{_until(self.expires_at)}: {self.reason}"


class RunJoinRequest(models.Model):
    """What somebody wrote who wants to join a run that asks for approval; the last of theirs."""

    class State(models.TextChoices):
        PENDING = "pending"
        APPROVED = "approved"
        REFUSED = "refused"

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="join_requests")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="join_requests"
    )
    text = models.CharField(max_length=300, default="", blank=True)
    asked_at = models.DateTimeField()
    state = models.CharField(max_length=20, choices=State.choices, default=State.PENDING)
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    decided_at = models.DateTimeField(null=True, blank=True)
    reason = models.CharField(max_length=300, default="", blank=True)

    class Meta:
        ordering = ("-asked_at",)
        constraints = (
            models.UniqueConstraint(fields=("run", "user"), name="one_request_per_run_and_user"),
        )

    def __str__(self) -> str:
        return f"{self.user_id} asks to join {self.run_id}"


class RunDeviceBar(models.Model):
    """A machine that was shut out of one run. Its account's other machines go on."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="device_bars")
    device = models.ForeignKey("accounts.Device", on_delete=models.CASCADE, related_name="run_bars")
    reason = models.CharField(max_length=300)
    barred_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    barred_at = models.DateTimeField()
    expires_at = models.DateTimeField(null=True, blank=True, db_index=True)

    class Meta:
        ordering = ("-barred_at",)
        constraints = (
            models.UniqueConstraint(fields=("run", "device"), name="one_bar_per_run_and_device"),
        )

    def __str__(self) -> str:
        return f"{self.device_id} shut out of {self.run_id}"

    @property
    def text(self) -> str:
        """The bar in words for the machine's owner."""
        return f"This machine is shut out of the run{_until(self.expires_at)}: {self.reason}"


class RunConfigVersion(models.Model):
    """An immutable config, kept as the bytes that were signed. Re-signing adds no version."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="configs")
    version = models.PositiveIntegerField()
    lineage = models.PositiveIntegerField()
    body = models.JSONField()
    jws = models.TextField()
    sha256 = models.CharField(max_length=64)
    """Of the first signed bytes; the next version names it."""
    published_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    published_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )

    class Meta:
        ordering = ("run", "-version")
        constraints = (
            models.UniqueConstraint(fields=("run", "version"), name="config_version_once"),
        )

    def __str__(self) -> str:
        return f"{self.run_id} v{self.version}"


class ConfigDraft(models.Model):
    """The next version of a run's config, while its organisers write it. May still be wrong."""

    run = models.OneToOneField(Run, on_delete=models.CASCADE, related_name="draft")
    body = models.JSONField(default=dict)
    """As typed: a field that does not fit is kept as text until somebody mends it."""
    revision = models.PositiveIntegerField(default=1)
    """Grows with each change; whoever saves names the one that they saw."""
    based_on = models.PositiveIntegerField(default=0)
    """Config version that it was begun from; 0: none was published."""
    edited_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    edited_at = models.DateTimeField()
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"draft {self.revision} of {self.run_id}"


class AllowedTask(models.Model):
    """A task of an installed package that an admin lets runs of this site name."""

    name = models.CharField(max_length=60, unique=True)
    summary = models.CharField(max_length=200, default="", blank=True)
    params_schema = models.JSONField(default=dict)
    """JSON schema of its parameters, as ``beeyard tasks --json`` prints it."""
    allowed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    allowed_at = models.DateTimeField()

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name


class Artifact(models.Model):
    """A file named by a config, stored in the data folder under its content hash."""

    sha256 = models.CharField(max_length=64, unique=True)
    name = models.CharField(max_length=80)
    size = models.PositiveBigIntegerField()
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"{self.name} {self.sha256[:12]}"


class BootstrapPeer(models.Model):
    """An address at which a run's swarm could be entered lately. Never shown in public."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="bootstrap_peers")
    lineage = models.PositiveIntegerField()
    address = models.CharField(max_length=300)
    seen_at = models.DateTimeField()

    class Meta:
        ordering = ("-seen_at",)
        constraints = (
            models.UniqueConstraint(fields=("run", "lineage", "address"), name="address_once"),
        )

    def __str__(self) -> str:
        return self.address


class Checkpoint(models.Model):
    """A saved state, as its coordinator's signed manifest describes it."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="checkpoints")
    lineage = models.PositiveIntegerField()
    epoch = models.PositiveIntegerField()
    config_version = models.PositiveIntegerField()
    files = models.JSONField()
    manifest = models.TextField()
    saved_at = models.DateTimeField()

    class Meta:
        ordering = ("-lineage", "-epoch")
        constraints = (
            models.UniqueConstraint(fields=("run", "lineage", "epoch"), name="checkpoint_once"),
        )

    def __str__(self) -> str:
        return f"{self.run_id} epoch {self.epoch}"
