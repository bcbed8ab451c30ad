"""What sign-up, log-in and terminal login do differently from allauth's defaults."""

from typing import Any
from urllib.parse import SplitResult, urlsplit, urlunsplit

from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.internal.stagekit import clear_login
from allauth.idp.oidc.adapter import DefaultOIDCAdapter
from allauth.idp.oidc.internal.private_keys import filter_keys
from allauth.idp.oidc.models import PrivateKey
from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.utils.http import url_has_allowed_host_and_scheme

from training.protocol.errors import ErrorCode
from web.accounts.models import User
from web.accounts.oidckey import oidc_key_pem
from web.accounts.usernames import skeleton, username_is_reserved, username_shape_ok
from web.core.audit import audit_record
from web.core.errors import AppError
from web.core.failures import error_response
from web.core.ratelimit import client_address


class AccountAdapter(DefaultAccountAdapter):
    """Sign-up and log-in of people."""

    def clean_username(self, username: str, shallow: bool = False) -> str:
        """Return the name in lower case, or say why it cannot be taken."""
        name = username.strip().lower()
        if not username_shape_ok(name):
            raise ValidationError(
                "Use 2 to 30 letters a-z, digits, - or _, with a letter or digit at both ends."
            )
        if username_is_reserved(name) or (not shallow and _looks_official(name)):
            raise ValidationError("This name is kept for the site. Please choose another one.")
        cleaned: str = super().clean_username(name, shallow)
        return cleaned

    @transaction.atomic
    def save_user(self, request: HttpRequest, user: User, form: Any, commit: bool = True) -> User:
        """Keep a new account, with its line in the audit log."""
        saved: User = super().save_user(request, user, form, commit)
        if commit:
            audit_record(saved, "user.registered", saved.username)
        return saved

    def pre_login(self, request: HttpRequest, user: User, **options: Any) -> HttpResponse | None:
        """Refuse a suspended account, after its password was right, and say so."""
        if user.is_banned:
            clear_login(request)
            return error_response(request, AppError(ErrorCode.BANNED, user.ban_text))
        response: HttpResponse | None = super().pre_login(request, user, **options)
        return response

    def is_safe_url(self, url: str) -> bool:
        """Whether visitors may be sent there after a form: to addresses of this site only.

        Other names that the site answers to, such as localhost, are somebody else's on the
        visitor's own machine.
        """
        try:
            return url_has_allowed_host_and_scheme(
                url, allowed_hosts={_public().netloc}, require_https=_public().scheme == "https"
            )
        except ValueError:  # such as a bracket without its twin
            return False

    def get_reset_password_from_key_url(self, key: str) -> str:
        """Return the link that is mailed; never at a host that the asker made up."""
        return _at_public_address(super().get_reset_password_from_key_url(key))

    def get_email_confirmation_url(self, request: HttpRequest, emailconfirmation: Any) -> str:
        """Return the link that is mailed; never at a host that the asker made up."""
        return _at_public_address(super().get_email_confirmation_url(request, emailconfirmation))

    def get_client_ip(self, request: HttpRequest) -> str:
        """Return the address that limits are counted by."""
        return client_address(request)


class OidcAdapter(DefaultOIDCAdapter):
    """Terminal login: the issuer is the public address, the key lives in the data folder."""

    def get_issuer(self) -> str:
        return str(settings.PUBLIC_URL)

    def list_private_keys(
        self, *, did_activate: bool | None = None, is_active: bool | None = None
    ) -> list[Any]:
        keys = [PrivateKey(pem=oidc_key_pem(settings.OIDC_KEY_FILE))]
        kept: list[Any] = filter_keys(keys, did_activate=did_activate, is_active=is_active)
        return kept


def _public() -> SplitResult:
    return urlsplit(settings.PUBLIC_URL)


def _at_public_address(url: str) -> str:
    public = _public()
    return urlunsplit(urlsplit(url)._replace(scheme=public.scheme, netloc=public.netloc))


def _looks_official(name: str) -> bool:
    official = User.objects.filter(Q(is_staff=True) | Q(is_service=True))
    names = official.exclude(username=name).values_list("username", flat=True)
    return skeleton(name) in {skeleton(taken) for taken in names}
