"""The ledger of counted samples, and the totals that are projected from it."""

from typing import Any, NoReturn

from django.conf import settings
from django.db import models

from training.protocol.states import CreditState

CREDIT_STATES = [(state.value, state.value) for state in CreditState]


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
    """Samples of one device in one epoch. Never changed; a correction is a new entry."""

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
    reason = models.CharField(max_length=200, default="", blank=True)
    finished_at = models.DateTimeField()
    """When the epoch ended, by the coordinator's clock."""
    recorded_at = models.DateTimeField(auto_now_add=True)
    corrects = models.ForeignKey(
        "self", on_delete=models.PROTECT, null=True, blank=True, related_name="corrections"
    )

    objects = LedgerQuerySet.as_manager()

    class Meta:
        ordering = ("-id",)
        constraints = (
            models.UniqueConstraint(
                fields=("run", "lineage", "epoch", "device"),
                condition=models.Q(corrects__isnull=True),
                name="one_entry_per_epoch_and_device",
            ),
            models.CheckConstraint(
                condition=models.Q(samples__gte=0) | models.Q(corrects__isnull=False),
                name="only_corrections_are_negative",
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

    def __str__(self) -> str:
        return f"{self.run_id} {self.user_id}: {self.samples}"
