from django.apps import AppConfig


class WorkersConfig(AppConfig):
    name = "web.workers"
    label = "workers"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from web.workers import signals  # noqa: F401 connects them
