from django.apps import AppConfig


class ProjectConfig(AppConfig):
    """The site as a whole: its system checks."""

    name = "web.project"
    label = "project"

    def ready(self) -> None:
        # Without celery's app, tasks that a request sends would look for a broker of their own.
        from web.project import celery, checks  # noqa: F401 registers both
