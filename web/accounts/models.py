"""People, their machines and their secrets (hashed)."""

import secrets

from django.contrib.auth.models import AbstractUser
from django.db import models


def public_id_make() -> str:
    """Return a short random id that is safe to show."""
    return secrets.token_hex(6)


class User(AbstractUser):
    """An account. ``is_service`` accounts own managed workers and are not ranked."""

    is_service = models.BooleanField(default=False)
    banned_at = models.DateTimeField(null=True, blank=True)
    banned_reason = models.CharField(max_length=300, default="", blank=True)
    banned_until = models.DateTimeField(null=True, blank=True, db_index=True)
    """When the site lifts the suspension by itself; None: never."""
    is_profile_public = models.BooleanField(default=True)
    country = models.CharField(max_length=2, default="", blank=True)
    """Chosen by the person and never looked up; empty until then. Shown in sums alone."""

    @property
    def is_banned(self) -> bool:
        return self.banned_at is not None

    @property
    def ban_text(self) -> str:
        """The suspension in words for its owner; '' without a reason."""
        until = f" until {self.banned_until:%Y-%m-%d %H:%M} UTC" if self.banned_until else ""
        return (
            f"This account is suspended{until}: {self.banned_reason}" if self.banned_reason else ""
        )


class Device(models.Model):
    """A machine of an account, known by its Ed25519 key. History belongs to the account."""

    public_id = models.CharField(max_length=12, unique=True, default=public_id_make)
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="devices")
    name = models.CharField(max_length=80)
    kid = models.CharField(max_length=64)
    """RFC 7638 thumbprint of the key."""
    jwk = models.JSONField()
    hardware = models.JSONField(default=dict)
    trainer_version = models.CharField(max_length=40, default="", blank=True)
    grant_id = models.CharField(max_length=64, default="", blank=True)
    """The terminal login (allauth grant) that this machine uses now."""
    created_at = models.DateTimeField(auto_now_add=True)
    last_seen_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    rekey_at = models.DateTimeField(null=True, blank=True)
    """When its owner gave up its key: the next new key of the account may become its key."""

    class Meta:
        ordering = ("-last_seen_at", "-id")
        constraints = (
            models.UniqueConstraint(fields=("user", "kid"), name="device_key_once_per_user"),
        )
        indexes = (models.Index(fields=("grant_id",), name="device_by_grant"),)

    def __str__(self) -> str:
        return f"{self.name} ({self.public_id})"

    @property
    def is_revoked(self) -> bool:
        return self.revoked_at is not None


class RetiredDeviceKey(models.Model):
    """A key that a machine had before. It is never taken again."""

    device = models.ForeignKey(Device, on_delete=models.CASCADE, related_name="retired_keys")
    kid = models.CharField(max_length=64)
    jwk = models.JSONField()
    retired_at = models.DateTimeField()

    class Meta:
        ordering = ("-id",)
        indexes = (models.Index(fields=("kid",), name="retired_device_key_by_kid"),)

    def __str__(self) -> str:
        return f"{self.kid[:8]}… of {self.device_id}"


class ApiToken(models.Model):
    """A secret for programs; shown once, kept as SHA-256."""

    class Scope(models.TextChoices):
        READ = "read"
        DEVICE = "device"
        COORDINATOR = "coordinator"

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="api_tokens")
    device = models.ForeignKey(
        Device, on_delete=models.CASCADE, null=True, blank=True, related_name="api_tokens"
    )
    """Bound by the first join made with it."""
    run_slug = models.CharField(max_length=60, default="", blank=True)
    """Only this run, when given."""
    name = models.CharField(max_length=80, default="", blank=True)
    scope = models.CharField(max_length=20, choices=Scope.choices)
    hash = models.CharField(max_length=64, unique=True)
    prefix = models.CharField(max_length=12)
    created_at = models.DateTimeField(auto_now_add=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-id",)

    def __str__(self) -> str:
        return f"{self.prefix}… ({self.scope})"
