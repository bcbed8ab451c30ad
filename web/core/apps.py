from django.apps import AppConfig


class CoreConfig(AppConfig):
    name = "web.core"
    label = "core"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from web.core.slowqueries import slow_queries_watch

        slow_queries_watch()
