from django.apps import AppConfig


class AlertsConfig(AppConfig):
    name = "web.alerts"
    label = "alerts"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from web.alerts import signals  # noqa: F401 connects them
