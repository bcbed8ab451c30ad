"""What coordinators saw: membership, the live state, history."""

from django.db import models

from web.accounts.models import public_id_make
from web.monitoring.history_models import SwarmMoment, SwarmTurn

__all__ = [
    "EpochRecord",
    "HarmUndo",
    "MetricPoint",
    "Peer",
    "RetiredPeer",
    "RevocationList",
    "RunEvent",
    "RunSwarm",
    "SwarmMoment",
    "SwarmTurn",
]


class Peer(models.Model):
    """A device's membership in a run's swarm: binds account, device key and swarm key."""

    public_id = models.CharField(max_length=12, unique=True, default=public_id_make)
    run = models.ForeignKey("runs.Run", on_delete=models.CASCADE, related_name="peers")
    device = models.ForeignKey("accounts.Device", on_delete=models.CASCADE, related_name="peers")
    peer_id = models.CharField(max_length=120)
    key_thumbprint = models.CharField(max_length=64)
    swarm_public_key = models.TextField()
    role = models.CharField(max_length=20)
    lineage = models.PositiveIntegerField(default=1)
    """Of the config that it joined with: its passes are for that swarm until it joins again."""
    hardware = models.JSONField(default=dict)
    trainer_version = models.CharField(max_length=40, default="", blank=True)
    joined_at = models.DateTimeField()
    heartbeat_at = models.DateTimeField(null=True, blank=True)
    heartbeat = models.JSONField(default=dict)
    """The last PassRequest."""
    seen_at = models.DateTimeField(null=True, blank=True)
    """When a coordinator last saw it in the swarm."""
    commands = models.JSONField(default=list)
    """Waiting for the next heartbeat."""
    paused_at = models.DateTimeField(null=True, blank=True)
    """Since when a moderator lets this peer rest; each heartbeat says so again."""
    paused_reason = models.CharField(max_length=300, default="", blank=True)
    revocations_seq = models.PositiveBigIntegerField(default=0)
    """Number of the revocation list that it applies, as its signed metrics said last."""

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("run", "device"), name="one_peer_per_run_and_device"),
            models.UniqueConstraint(fields=("run", "key_thumbprint"), name="swarm_key_once"),
            models.UniqueConstraint(fields=("run", "peer_id"), name="peer_id_once"),
        )

    def __str__(self) -> str:
        return f"{self.peer_id[-8:]} in {self.run_id}"


class PeerMessage(models.Model):
    """What a moderator wrote to the person behind a peer. Never changed once it was sent."""

    peer = models.ForeignKey(Peer, on_delete=models.CASCADE, related_name="messages")
    text = models.CharField(max_length=500)
    sent_by = models.ForeignKey(
        "accounts.User", on_delete=models.SET_NULL, null=True, related_name="+"
    )
    sent_at = models.DateTimeField()
    shown_at = models.DateTimeField(null=True, blank=True)
    """When the trainer said that it had shown it."""

    class Meta:
        ordering = ("-id",)
        indexes = (
            models.Index(
                fields=("peer", "id"),
                name="messages_to_show",
                condition=models.Q(shown_at__isnull=True),
            ),
        )

    def __str__(self) -> str:
        return f"to {self.peer_id}: {self.text[:40]}"


class RunSwarm(models.Model):
    """The newest known state of a run's swarm; everything in Redis is rebuilt from here."""

    run = models.OneToOneField("runs.Run", on_delete=models.CASCADE, related_name="swarm")
    coordinator = models.ForeignKey(
        "accounts.Device", on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    last_seq = models.PositiveBigIntegerField(default=0)
    """Number of the newest accepted snapshot."""
    taken_at = models.DateTimeField(null=True, blank=True)
    received_at = models.DateTimeField(null=True, blank=True)
    live = models.JSONField(default=dict)
    """A LiveRun body."""
    trails = models.JSONField(default=dict, blank=True)
    """The last reports of each trainer (:mod:`web.monitoring.trails`)."""

    def __str__(self) -> str:
        return f"swarm of {self.run_id}"


class RevocationList(models.Model):
    """A run's list of peers that nobody in its swarm may deal with. Its content never changes."""

    run = models.ForeignKey("runs.Run", on_delete=models.CASCADE, related_name="revocation_lists")
    seq = models.PositiveBigIntegerField()
    """0 is the empty list of a run in which nobody was ever revoked."""
    peer_ids = models.JSONField(default=list)
    """Sorted."""
    made_at = models.DateTimeField()
    seen_at = models.DateTimeField(null=True, blank=True)
    """When every verified trainer of the swarm applied this list or a later one."""
    jws = models.TextField(default="", blank=True)
    """The newest signature; signing again changes the times in it, never the list."""
    signed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("run", "-seq")
        constraints = (models.UniqueConstraint(fields=("run", "seq"), name="revocation_seq_once"),)

    def __str__(self) -> str:
        return f"{self.run_id} revocations {self.seq}"


class RetiredPeer(models.Model):
    """A swarm identity that its device gave up. Passes for it may still be about."""

    run = models.ForeignKey("runs.Run", on_delete=models.CASCADE, related_name="retired_peers")
    device = models.ForeignKey("accounts.Device", on_delete=models.CASCADE, related_name="+")
    peer_id = models.CharField(max_length=120)
    retired_at = models.DateTimeField()

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("run", "peer_id"), name="retired_peer_id_once"),
        )

    def __str__(self) -> str:
        return f"{self.peer_id[-8:]} gave up {self.run_id}"


class HarmUndo(models.Model):
    """What an organiser undid of one account's work in a run: who was shut out, what was taken
    back, and to which saved state the run went. Made once, never changed."""

    class Action(models.TextChoices):
        BAR = "bar", "Bar from this run"
        BAN = "ban", "Suspend the account on the whole site"
        REVOKE = "revoke", "Revoke the device"
        NONE = "none", "Shut nobody out"

    public_id = models.CharField(max_length=12, unique=True, default=public_id_make)
    run = models.ForeignKey("runs.Run", on_delete=models.CASCADE, related_name="harm_undos")
    actor = models.ForeignKey("accounts.User", on_delete=models.PROTECT, related_name="+")
    user = models.ForeignKey("accounts.User", on_delete=models.PROTECT, related_name="+")
    device = models.ForeignKey(
        "accounts.Device", on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    """Only this one of the account's devices, when given."""
    from_epoch = models.PositiveIntegerField()
    action = models.CharField(max_length=10, choices=Action.choices)
    reason = models.CharField(max_length=300)
    num_entries = models.PositiveIntegerField()
    samples = models.PositiveBigIntegerField()
    """Taken back."""
    revocations_seq = models.PositiveBigIntegerField()
    """Number of the revocation list that resulted."""
    config = models.ForeignKey(
        "runs.RunConfigVersion", on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    """The version that began the new lineage; None: the model was left as it was."""
    num_peers = models.PositiveIntegerField()
    """Trainers that were there and had to reload."""
    made_at = models.DateTimeField()

    class Meta:
        ordering = ("-id",)

    def __str__(self) -> str:
        return f"{self.run_id}: {self.user_id} from epoch {self.from_epoch}"


class EpochRecord(models.Model):
    """One finished epoch: the history behind the loss chart."""

    run = models.ForeignKey("runs.Run", on_delete=models.CASCADE, related_name="epochs")
    lineage = models.PositiveIntegerField()
    epoch = models.PositiveIntegerField()
    finished_at = models.DateTimeField()
    seconds = models.FloatField(default=0)
    samples = models.PositiveBigIntegerField(default=0)
    num_peers = models.PositiveIntegerField(default=0)
    loss = models.FloatField(null=True)
    num_timed = models.PositiveIntegerField(default=0)
    """Trainers whose signed reports say how they spent this epoch; the next five are theirs."""
    num_averaged = models.PositiveIntegerField(default=0)
    """Of those, how many ended it with others' gradients in theirs, or had nobody to wait for."""
    computing_seconds = models.FloatField(null=True)
    """Mean of those trainers, as the next three."""
    matchmaking_seconds = models.FloatField(null=True)
    averaging_seconds = models.FloatField(null=True)
    waiting_seconds = models.FloatField(null=True)

    class Meta:
        ordering = ("lineage", "epoch")
        constraints = (
            models.UniqueConstraint(fields=("run", "lineage", "epoch"), name="epoch_once"),
        )
        indexes = (models.Index(fields=("run", "finished_at"), name="epochs_by_time"),)

    def __str__(self) -> str:
        return f"{self.run_id} epoch {self.epoch}"


class MetricPoint(models.Model):
    """What a snapshot said, kept raw for a day, then by the minute, then by the hour."""

    class Resolution(models.IntegerChoices):
        RAW = 0
        MINUTE = 60
        HOUR = 3600

    run = models.ForeignKey("runs.Run", on_delete=models.CASCADE, related_name="points")
    resolution = models.PositiveIntegerField(choices=Resolution.choices, default=Resolution.RAW)
    at = models.DateTimeField()
    epoch = models.PositiveIntegerField()
    loss = models.FloatField(null=True)
    samples_per_second = models.FloatField()
    num_peers = models.PositiveIntegerField()
    samples_total = models.PositiveBigIntegerField()

    class Meta:
        ordering = ("at",)
        constraints = (
            models.UniqueConstraint(fields=("run", "resolution", "at"), name="point_once"),
        )

    def __str__(self) -> str:
        return f"{self.run_id} {self.at:%F %T}"


class RunEvent(models.Model):
    """A line of the events feed, numbered in the run's sequence."""

    run = models.ForeignKey("runs.Run", on_delete=models.CASCADE, related_name="events")
    seq = models.PositiveBigIntegerField()
    at = models.DateTimeField()
    kind = models.CharField(max_length=60)
    """Dotted, past tense: ``peer.joined``, ``epoch.finished``, ``checkpoint.saved``."""
    text = models.CharField(max_length=300)
    peer = models.CharField(max_length=16, default="", blank=True)
    """Public id of the one peer that it is about."""

    class Meta:
        ordering = ("-id",)
        constraints = (models.UniqueConstraint(fields=("run", "seq"), name="event_seq_once"),)
        indexes = (
            models.Index(
                fields=("run", "peer", "-seq"),
                name="events_of_a_peer",
                condition=~models.Q(peer=""),
            ),
        )

    def __str__(self) -> str:
        return f"{self.kind} {self.text}"
