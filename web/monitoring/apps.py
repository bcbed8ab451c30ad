from django.apps import AppConfig


class MonitoringConfig(AppConfig):
    name = "web.monitoring"
    label = "monitoring"
    default_auto_field = "django.db.models.BigAutoField"
