"""Managed workers to look at; they are started and stopped at the desk, which audits it."""

from django.contrib import admin

from web.core.admin import ReadOnlyAdmin
from web.workers.models import ManagedWorker, WorkerEvent


@admin.register(ManagedWorker)
class ManagedWorkerAdmin(ReadOnlyAdmin):
    list_display = ("run", "name", "kind", "desired", "state", "pid", "num_restarts")
    list_filter = ("kind", "state", "desired")
    list_select_related = ("run",)


@admin.register(WorkerEvent)
class WorkerEventAdmin(ReadOnlyAdmin):
    list_display = ("at", "worker", "kind", "text")
    list_filter = ("kind",)
    list_select_related = ("worker",)
