from typing import Any

from django.apps import AppConfig
from django.db import connections
from django.db.models.signals import post_migrate


def oauth_client_after_migrate(using: str, **signal: Any) -> None:
    """Make the trainers' login client once its table is there."""
    from allauth.idp.oidc.models import Client

    from web.accounts.grants import oauth_client_ensure

    if Client._meta.db_table in connections[using].introspection.table_names():
        oauth_client_ensure()


class AccountsConfig(AppConfig):
    name = "web.accounts"
    label = "accounts"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        post_migrate.connect(oauth_client_after_migrate, sender=self)
