"""Terminal logins (allauth grants): the client they belong to, and how they end."""

from datetime import datetime
from typing import Any

from allauth.idp.oidc.models import Client, Token
from django.db.models import QuerySet

from training.protocol.names import OAUTH_CLIENT_ID, OAUTH_SCOPES


def oauth_client_ensure(**signal: Any) -> None:
    """Make the public client that trainers log in with (after every migrate)."""
    client, _ = Client.objects.get_or_create(id=OAUTH_CLIENT_ID, defaults={"name": "Beeyard"})
    client.name = "Beeyard trainer"
    client.type = Client.Type.PUBLIC
    client.set_grant_types([Client.GrantType.DEVICE_CODE, Client.GrantType.REFRESH_TOKEN])
    client.set_scopes(OAUTH_SCOPES.split())
    client.set_default_scopes(OAUTH_SCOPES.split())
    client.set_response_types([Client.ResponseType.NONE])
    client.save()


def grant_end(user_id: int, grant_id: str, now: datetime) -> None:
    """End one terminal login."""
    if grant_id:
        _end(Token.objects.filter(user_id=user_id, data__grant_id=grant_id), now)


def grants_end(user_id: int, now: datetime) -> None:
    """End all terminal logins of an account."""
    _end(Token.objects.filter(user_id=user_id), now)


def _end(tokens: "QuerySet[Token]", now: datetime) -> None:
    # Access tokens stay, expired, so that their holder is told the true reason
    # (see credential_of_token) until they are cleared away.
    tokens.filter(type=Token.Type.ACCESS_TOKEN, expires_at__gt=now).update(expires_at=now)
    tokens.exclude(type=Token.Type.ACCESS_TOKEN).delete()
