from django.apps import AppConfig


class ProjectConfig(AppConfig):
    """The site as a whole: its system checks."""

    name = "web.project"
    label = "project"

    def ready(self) -> None:
        from web.project import checks  # noqa: F401 registers them
