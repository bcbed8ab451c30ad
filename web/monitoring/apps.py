from django.apps import AppConfig


class MonitoringConfig(AppConfig):
    name = "web.monitoring"
    label = "monitoring"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from web.monitoring.services import run_changed_announce
        from web.runs.signals import run_changed

        run_changed.connect(run_changed_announce, dispatch_uid="monitoring")
