from django.apps import AppConfig
from django.db.models.signals import post_migrate


class ContributionsConfig(AppConfig):
    name = "web.contributions"
    label = "contributions"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from web.contributions.append_only import triggers_install_again

        post_migrate.connect(triggers_install_again, sender=self)
