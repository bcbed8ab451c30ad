"""Managed workers to look at; they are started and stopped at the desk, which audits it."""

from django.contrib import admin

from web.core.admin import ReadOnlyAdmin
from web.workers.models import Evaluation, EvaluationJob, ManagedWorker, WorkerEvent, WorkerNode


@admin.register(ManagedWorker)
class ManagedWorkerAdmin(ReadOnlyAdmin):
    list_display = ("run", "name", "kind", "node", "desired", "state", "pid", "num_restarts")
    list_filter = ("kind", "state", "desired", "node")
    list_select_related = ("run",)


@admin.register(WorkerEvent)
class WorkerEventAdmin(ReadOnlyAdmin):
    list_display = ("at", "worker", "kind", "text")
    list_filter = ("kind",)
    list_select_related = ("worker",)


@admin.register(WorkerNode)
class WorkerNodeAdmin(ReadOnlyAdmin):
    list_display = ("name", "host", "cpus", "memory_mb", "seen_at", "left_at")


@admin.register(EvaluationJob)
class EvaluationJobAdmin(ReadOnlyAdmin):
    list_display = ("run", "lineage", "epoch", "state", "node", "asked_at", "seconds")
    list_filter = ("state", "node")
    list_select_related = ("run",)


@admin.register(Evaluation)
class EvaluationAdmin(ReadOnlyAdmin):
    list_display = ("job", "metric", "value")
    list_select_related = ("job",)
