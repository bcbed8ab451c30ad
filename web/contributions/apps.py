from django.apps import AppConfig


class ContributionsConfig(AppConfig):
    name = "web.contributions"
    label = "contributions"
    default_auto_field = "django.db.models.BigAutoField"
