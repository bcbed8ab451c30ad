from django.apps import AppConfig


class ProjectConfig(AppConfig):
    """The site as a whole: its system checks."""

    name = "web.project"
    label = "project"

    def ready(self) -> None:
        # Every process has to know the app, or its jobs go to celery's default broker.
        from web.project import (
            celery,  # noqa: F401
            checks,  # noqa: F401 registers them
        )
