"""Rows that belong to no domain: what happened, and who did it."""

from django.db import models


class AuditEntry(models.Model):
    """One act with consequences. Never changed; the actor's name is kept as it was then."""

    at = models.DateTimeField(auto_now_add=True)
    actor_id = models.BigIntegerField(null=True)
    actor_name = models.CharField(max_length=150, default="", blank=True)
    """Empty: the site itself."""
    code = models.CharField(max_length=80)
    """Dotted, past tense: ``run.config.published``."""
    target = models.CharField(max_length=200)
    data = models.JSONField(default=dict, blank=True)

    class Meta:
        ordering = ("-id",)
        indexes = (models.Index(fields=("code", "-id"), name="audit_by_code"),)

    def __str__(self) -> str:
        return f"{self.code} {self.target}"
