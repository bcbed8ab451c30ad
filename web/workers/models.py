"""Processes that the platform itself runs, their nodes, and evaluations of checkpoints."""

from django.conf import settings
from django.db import models

from training.protocol.states import WorkerState

WORKER_STATES = [(state.value, state.value) for state in WorkerState]


def node_here() -> str:
    """Return the name of this installation's own node."""
    return str(settings.NODE)


class WorkerNode(models.Model):
    """An installation whose celery worker starts processes, as it last described itself.

    Its queue is ``node.<name>``. Limits count the managed workers that are wanted there.
    """

    name = models.SlugField(max_length=40, unique=True)
    installation = models.CharField(max_length=40)
    """Kept in its data folder: two machines must not share a name."""
    host = models.CharField(max_length=120, default="")
    site_url = models.CharField(max_length=200, default="", blank=True)
    """The site's public address; only the site's own node says it."""
    cpus = models.PositiveIntegerField(default=0)
    memory_mb = models.PositiveIntegerField(default=0)
    devices = models.JSONField(default=list, blank=True)
    """GPUs, as ``{"device": "cuda:0", "name": …}``."""
    version = models.CharField(max_length=40, default="")
    started_at = models.DateTimeField()
    seen_at = models.DateTimeField()
    left_at = models.DateTimeField(null=True, blank=True)
    """It said good-bye; None while it has not."""
    max_processes = models.PositiveIntegerField(null=True, blank=True)
    max_threads = models.PositiveIntegerField(null=True, blank=True)
    max_memory_mb = models.PositiveIntegerField(null=True, blank=True)

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name


class ManagedWorker(models.Model):
    """A process that should run or not, and what was last observed of it.

    A process is known by its pid AND its start time: pids are used again.
    """

    class Kind(models.TextChoices):
        COORDINATOR = "coordinator"
        TRAINER = "trainer"
        AUXILIARY = "auxiliary"

    class Desired(models.TextChoices):
        RUNNING = "running"
        STOPPED = "stopped"
        RESTARTING = "restarting"
        """It is stopped, and wanted again as soon as it has."""

    run = models.ForeignKey("runs.Run", on_delete=models.CASCADE, related_name="managed_workers")
    kind = models.CharField(max_length=20, choices=Kind.choices)
    name = models.CharField(max_length=60)
    """Also the name of its folder and of its device."""
    node = models.CharField(max_length=40, default=node_here, db_index=True)
    """Name of the node that runs it; no other one touches its process or files."""
    device = models.CharField(max_length=20, default="", blank=True)
    """``cpu`` or ``cuda:N``; empty: what the trainer finds."""
    threads = models.PositiveIntegerField(default=1)
    memory_mb = models.PositiveIntegerField(null=True, blank=True)
    """All its processes together; it is restarted when it takes more."""
    hours = models.FloatField(null=True, blank=True)
    """How long it is wanted after each start by a person."""
    wanted_until = models.DateTimeField(null=True, blank=True)
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


class EvaluationJob(models.Model):
    """One look at one checkpoint: asked for, run by a node, done or failed. Outlives its files."""

    class State(models.TextChoices):
        WAITING = "waiting"
        RUNNING = "running"
        DONE = "done"
        FAILED = "failed"
        SKIPPED = "skipped"

    run = models.ForeignKey("runs.Run", on_delete=models.CASCADE, related_name="evaluation_jobs")
    lineage = models.PositiveIntegerField()
    epoch = models.PositiveIntegerField()
    config_version = models.PositiveIntegerField()
    state = models.CharField(max_length=20, choices=State.choices, default=State.WAITING)
    asked_at = models.DateTimeField()
    asked_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    """None: the run's config asks for it."""
    node = models.CharField(max_length=40)
    pid = models.PositiveIntegerField(null=True, blank=True)
    process_started_at = models.FloatField(null=True, blank=True)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    seconds = models.FloatField(null=True, blank=True)
    num_samples = models.PositiveIntegerField(default=0)
    examples = models.JSONField(default=list, blank=True)
    """``{"text", "guesses": [{"hidden", "guess"}]}``, the same ones for each checkpoint."""
    reason = models.CharField(max_length=500, default="", blank=True)
    """Why it failed or was skipped."""

    class Meta:
        ordering = ("-lineage", "-epoch")
        constraints = (
            models.UniqueConstraint(
                fields=("run", "lineage", "epoch"), name="evaluation_once_per_checkpoint"
            ),
        )
        indexes = (models.Index(fields=("node", "state"), name="evaluation_node_state"),)

    def __str__(self) -> str:
        return f"{self.run_id} {self.lineage}/{self.epoch} {self.state}"


class Evaluation(models.Model):
    """One figure of a finished evaluation."""

    job = models.ForeignKey(EvaluationJob, on_delete=models.CASCADE, related_name="results")
    metric = models.CharField(max_length=60)
    value = models.FloatField()

    class Meta:
        ordering = ("id",)
        constraints = (
            models.UniqueConstraint(fields=("job", "metric"), name="evaluation_metric_once"),
        )

    def __str__(self) -> str:
        return f"{self.metric} {self.value}"
