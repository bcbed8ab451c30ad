"""The ledger of counted samples, and the totals that are projected from it."""

from typing import Any, NoReturn

from django.conf import settings
from django.db import models

from training.protocol.states import CreditState
from web.contributions.grounds import Ground, SuspicionKind

CREDIT_STATES = [(state.value, state.value) for state in CreditState]
GROUNDS = [(ground.value, ground.value) for ground in Ground]
SUSPICION_KINDS = [(kind.value, kind.value) for kind in SuspicionKind]


class LedgerIsAppendOnlyError(TypeError):
    """Somebody tried to change history."""

    def __init__(self) -> None:
        super().__init__("Ledger entries are never changed; add a correction instead.")


class LedgerQuerySet(models.QuerySet["LedgerEntry"]):
    """Adds and reads only."""

    def update(self, **values: Any) -> NoReturn:
        raise LedgerIsAppendOnlyError

    def delete(self) -> NoReturn:
        raise LedgerIsAppendOnlyError


class LedgerEntry(models.Model):
    """Samples of one device in one epoch. Never changed: the database refuses it.

    What follows is a new entry: one that ``settles`` a provisional one, confirmed or rejected,
    and takes its place; or one that ``corrects`` a confirmed one by adding to it.
    """

    run = models.ForeignKey("runs.Run", on_delete=models.PROTECT, related_name="ledger")
    lineage = models.PositiveIntegerField()
    epoch = models.PositiveIntegerField()
    device = models.ForeignKey("accounts.Device", on_delete=models.PROTECT, related_name="ledger")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="ledger"
    )
    samples = models.BigIntegerField()
    """Negative in a correction."""
    seconds = models.FloatField(default=0)
    """Length of the epoch: what device-hours are summed from. Negative in a reversal."""
    state = models.CharField(max_length=20, choices=CREDIT_STATES)
    ground = models.CharField(max_length=40, default="", blank=True, choices=GROUNDS)
    """Code of ``reason``."""
    reason = models.CharField(max_length=200, default="", blank=True)
    finished_at = models.DateTimeField()
    """When the epoch ended, by the coordinator's clock."""
    recorded_at = models.DateTimeField(auto_now_add=True)
    corrects = models.ForeignKey(
        "self", on_delete=models.PROTECT, null=True, blank=True, related_name="corrections"
    )
    settles = models.OneToOneField(
        "self", on_delete=models.PROTECT, null=True, blank=True, related_name="settlement"
    )

    objects = LedgerQuerySet.as_manager()

    class Meta:
        ordering = ("-id",)
        constraints = (
            models.UniqueConstraint(
                fields=("run", "lineage", "epoch", "device"),
                condition=models.Q(corrects__isnull=True, settles__isnull=True),
                name="one_entry_per_epoch_and_device",
            ),
            models.CheckConstraint(
                condition=models.Q(samples__gte=0) | models.Q(corrects__isnull=False),
                name="only_corrections_are_negative",
            ),
            models.CheckConstraint(
                condition=models.Q(settles__isnull=True)
                | (models.Q(corrects__isnull=True) & ~models.Q(state="provisional")),
                name="a_settlement_is_final",
            ),
        )
        indexes = (
            models.Index(fields=("run", "-finished_at"), name="ledger_by_run_and_time"),
            models.Index(fields=("user", "-id"), name="ledger_by_user"),
        )

    def __str__(self) -> str:
        return f"{self.run_id} epoch {self.epoch}: {self.samples}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        if not self._state.adding:
            raise LedgerIsAppendOnlyError
        super().save(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise LedgerIsAppendOnlyError

    def follow_up(self, **values: Any) -> "LedgerEntry":
        """Return a new entry, not saved, about the same work of the same device."""
        return LedgerEntry(
            run_id=self.run_id,
            lineage=self.lineage,
            epoch=self.epoch,
            device_id=self.device_id,
            user_id=self.user_id,
            finished_at=self.finished_at,
            **values,
        )


class ContributionTotal(models.Model):
    """A projection of the ledger; ``rebuild_totals`` makes it anew."""

    run = models.ForeignKey("runs.Run", on_delete=models.CASCADE, related_name="totals")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="totals"
    )
    samples = models.BigIntegerField(default=0)
    seconds = models.FloatField(default=0)
    epochs = models.PositiveIntegerField(default=0)
    last_at = models.DateTimeField(null=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("run", "user"), name="one_total_per_run_and_user"),
        )
        indexes = (models.Index(fields=("run", "-samples", "user"), name="totals_by_rank"),)

    def __str__(self) -> str:
        return f"{self.run_id} {self.user_id}: {self.samples}"


class EpochEvidence(models.Model):
    """What is known of a finished epoch while devices' claims to it are judged."""

    run = models.ForeignKey("runs.Run", on_delete=models.CASCADE, related_name="evidence")
    lineage = models.PositiveIntegerField()
    epoch = models.PositiveIntegerField()
    finished_at = models.DateTimeField()
    seconds = models.FloatField(default=0)
    accumulated = models.BigIntegerField(null=True)
    claims = models.JSONField(default=dict)
    """Claim bodies (:class:`web.contributions.claims.Claim`) by peer id."""
    due_at = models.DateTimeField()
    """By the site's clock: from then on missing evidence is not waited for."""
    settled_at = models.DateTimeField(null=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("run", "lineage", "epoch"), name="evidence_once"),
        )
        indexes = (
            models.Index(
                fields=("run", "due_at"),
                name="evidence_open",
                condition=models.Q(settled_at__isnull=True),
            ),
        )

    def __str__(self) -> str:
        return f"{self.run_id} epoch {self.epoch}: {len(self.claims)} claims"


class LedgerCheck(models.Model):
    """What a comparison of all totals with the ledger found."""

    at = models.DateTimeField()
    num_totals = models.PositiveIntegerField()
    num_differences = models.PositiveIntegerField()
    differences = models.JSONField(default=list)
    """The first of them: ``run``, ``user``, samples by ``ledger`` and by ``total``."""

    class Meta:
        ordering = ("-id",)

    def __str__(self) -> str:
        return f"{self.num_differences} of {self.num_totals} totals differ"


class Suspicion(models.Model):
    """Something that looks wrong about a device; its new work waits until it is decided."""

    class State(models.TextChoices):
        OPEN = "open"
        CLEARED = "cleared"
        UPHELD = "upheld"

    run = models.ForeignKey("runs.Run", on_delete=models.CASCADE, related_name="suspicions")
    device = models.ForeignKey(
        "accounts.Device", on_delete=models.CASCADE, related_name="suspicions"
    )
    kind = models.CharField(max_length=40, choices=SUSPICION_KINDS)
    evidence = models.JSONField(default=dict)
    """Figures behind it, by name, for people to read."""
    at = models.DateTimeField()
    state = models.CharField(max_length=10, choices=State, default=State.OPEN)
    decided_at = models.DateTimeField(null=True, blank=True)
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    reason = models.CharField(max_length=200, default="", blank=True)

    class Meta:
        ordering = ("-id",)
        constraints = (
            models.UniqueConstraint(
                fields=("run", "device", "kind"),
                condition=models.Q(state="open"),
                name="one_open_suspicion_of_a_kind",
            ),
        )

    def __str__(self) -> str:
        return f"{self.kind} of {self.device_id} in {self.run_id}"
