"""What a swarm was like: for the replay, and for the marks of the timeline."""

from django.db import models


class SwarmMoment(models.Model):
    """The swarm at one time: every ten seconds for three hours, every minute for a week, then
    every hour (:mod:`web.monitoring.moments`)."""

    run = models.ForeignKey("runs.Run", on_delete=models.CASCADE, related_name="moments")
    resolution = models.PositiveIntegerField(default=0)
    """Seconds of the slot that it was kept for; 0: not thinned yet."""
    at = models.DateTimeField()
    lineage = models.PositiveIntegerField()
    epoch = models.PositiveIntegerField()
    state = models.CharField(max_length=30)
    """A SwarmState."""
    loss = models.FloatField(null=True)
    samples_per_second = models.FloatField()
    samples_total = models.PositiveBigIntegerField()
    num_peers = models.PositiveIntegerField()
    """Trainers that were there."""
    counts = models.JSONField(default=dict)
    """Trainers by state, also those that had gone."""
    classes = models.JSONField(default=dict)
    """Samples per second by hardware class."""
    peers = models.JSONField(default=list)
    """Of the fastest trainers: public id, state, epoch, samples per second, hardware class. Names
    are looked up when it is read, so that a name that is hidden later is hidden here too."""

    class Meta:
        ordering = ("at",)
        constraints = (models.UniqueConstraint(fields=("run", "at"), name="moment_once"),)
        indexes = (models.Index(fields=("run", "resolution", "at"), name="moments_by_age"),)

    def __str__(self) -> str:
        return f"{self.run_id} at {self.at:%F %T}"


class SwarmTurn(models.Model):
    """The swarm went over to another condition: it trains, waits for peers, stalls, is unknown."""

    run = models.ForeignKey("runs.Run", on_delete=models.CASCADE, related_name="turns")
    at = models.DateTimeField()
    condition = models.CharField(max_length=20)
    reason = models.CharField(max_length=300)

    class Meta:
        ordering = ("at", "id")
        indexes = (models.Index(fields=("run", "at"), name="turns_by_time"),)

    def __str__(self) -> str:
        return f"{self.run_id} {self.condition}"
