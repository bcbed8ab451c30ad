"""Trainers and coordinators that the platform itself runs."""

from django.db import models

from training.protocol.states import WorkerState

WORKER_STATES = [(state.value, state.value) for state in WorkerState]


class ManagedWorker(models.Model):
    """A process that should run or not, and what was last observed of it.

    A process is known by its pid AND its start time: pids are used again.
    """

    class Kind(models.TextChoices):
        COORDINATOR = "coordinator"
        TRAINER = "trainer"

    class Desired(models.TextChoices):
        RUNNING = "running"
        STOPPED = "stopped"

    run = models.ForeignKey("runs.Run", on_delete=models.CASCADE, related_name="managed_workers")
    kind = models.CharField(max_length=20, choices=Kind.choices)
    name = models.CharField(max_length=60)
    """Also the name of its folder and of its device."""
    desired = models.CharField(max_length=20, choices=Desired.choices, default=Desired.RUNNING)
    state = models.CharField(max_length=20, choices=WORKER_STATES, default=WorkerState.REQUESTED)
    state_changed_at = models.DateTimeField(auto_now_add=True)
    pid = models.PositiveIntegerField(null=True, blank=True)
    process_started_at = models.FloatField(null=True, blank=True)
    """As the operating system tells it, seconds since the epoch."""
    port = models.PositiveIntegerField(null=True, blank=True)
    num_restarts = models.PositiveIntegerField(default=0)
    start_after = models.DateTimeField(null=True, blank=True)
    """Back-off: not before."""
    last_error = models.TextField(default="", blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("id",)
        constraints = (
            models.UniqueConstraint(fields=("run", "name"), name="worker_name_once_per_run"),
        )

    def __str__(self) -> str:
        return f"{self.name} of {self.run_id}"


class WorkerEvent(models.Model):
    """What happened to a managed worker, for the organiser's eyes."""

    worker = models.ForeignKey(ManagedWorker, on_delete=models.CASCADE, related_name="events")
    at = models.DateTimeField(auto_now_add=True)
    kind = models.CharField(max_length=40)
    text = models.CharField(max_length=500)

    class Meta:
        ordering = ("-id",)

    def __str__(self) -> str:
        return f"{self.kind} {self.text}"
