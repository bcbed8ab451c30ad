from django.apps import AppConfig


class LiveConfig(AppConfig):
    name = "web.live"
    label = "live"
    default_auto_field = "django.db.models.BigAutoField"
