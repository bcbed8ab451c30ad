"""Rows that belong to no domain: what happened, and who did it."""

from django.db import models


class AuditEntry(models.Model):
    """One act with consequences. Never changed: the database refuses it.

    Each entry is chained to the one before (:mod:`web.core.chain`), so that an edit, a deletion or
    another order is found. The actor's name is kept as it was then.
    """

    seq = models.PositiveBigIntegerField(unique=True)
    """Place in the chain, from 1 without gaps."""
    previous = models.CharField(max_length=64, unique=True)
    """Hash of the entry before; unique, so that the chain cannot fork."""
    hash = models.CharField(max_length=64)
    """SHA-256 over ``previous`` and the content."""
    at = models.DateTimeField()
    actor_id = models.BigIntegerField(null=True)
    actor_name = models.CharField(max_length=150, default="", blank=True)
    """Empty: the site itself."""
    code = models.CharField(max_length=80)
    """Dotted, past tense: ``run.config.published``."""
    target = models.CharField(max_length=200)
    run = models.CharField(max_length=60, default="", blank=True)
    """Slug of the run that it is about; empty: none, or all."""
    data = models.JSONField(default=dict, blank=True)
    """Details by name; ``reason``, ``before`` and ``after`` are shown apart."""

    class Meta:
        ordering = ("-id",)
        indexes = (
            models.Index(fields=("code", "-id"), name="audit_by_code"),
            models.Index(fields=("run", "-id"), name="audit_by_run"),
            models.Index(fields=("actor_name", "-id"), name="audit_by_actor"),
            models.Index(fields=("at",), name="audit_by_time"),
        )

    def __str__(self) -> str:
        return f"{self.code} {self.target}"


class AuditHead(models.Model):
    """Where the chain ends: one row, locked by whoever adds to it. It only moves forward."""

    seq = models.PositiveBigIntegerField(default=0)
    hash = models.CharField(max_length=64, default="", blank=True)

    def __str__(self) -> str:
        return f"{self.seq} {self.hash[:8]}"


class AuditCheck(models.Model):
    """What a walk along the chain found; its head is compared with by later walks."""

    at = models.DateTimeField()
    num_entries = models.PositiveBigIntegerField()
    head = models.CharField(max_length=64, default="", blank=True)
    """Hash of the last entry that was looked at."""
    broken_seq = models.PositiveBigIntegerField(null=True)
    """Place of the first entry that does not hold; None: all do."""
    text = models.CharField(max_length=300, default="", blank=True)

    class Meta:
        ordering = ("-id",)

    def __str__(self) -> str:
        return self.text or f"{self.num_entries} entries hold"
