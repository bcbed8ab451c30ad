from django.apps import AppConfig
from django.db.models.signals import post_migrate


class CoreConfig(AppConfig):
    name = "web.core"
    label = "core"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from web.core.append_only import triggers_install_again

        post_migrate.connect(triggers_install_again, sender=self)
        from web.core.slowqueries import slow_queries_watch

        slow_queries_watch()
