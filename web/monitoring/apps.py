from django.apps import AppConfig


class MonitoringConfig(AppConfig):
    name = "web.monitoring"
    label = "monitoring"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from web.accounts.signals import access_changed, access_changing, profile_closed
        from web.monitoring.services import run_changed_announce
        from web.monitoring.services.profiles import profile_closed_hide
        from web.monitoring.services.revocations import (
            access_changed_revoke,
            access_changing_lock,
            run_bars_changed_revoke,
        )
        from web.runs.signals import run_bars_changed, run_changed

        run_changed.connect(run_changed_announce, dispatch_uid="monitoring")
        access_changing.connect(access_changing_lock, dispatch_uid="monitoring")
        access_changed.connect(access_changed_revoke, dispatch_uid="monitoring")
        profile_closed.connect(profile_closed_hide, dispatch_uid="monitoring")
        run_bars_changed.connect(run_bars_changed_revoke, dispatch_uid="monitoring")
