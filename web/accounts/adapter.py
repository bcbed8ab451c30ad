"""What sign-up, log-in and terminal login do differently from allauth's defaults."""

from allauth.account.adapter import DefaultAccountAdapter
from allauth.idp.oidc.adapter import DefaultOIDCAdapter


class AccountAdapter(DefaultAccountAdapter):
    """Sign-up and log-in."""


class OidcAdapter(DefaultOIDCAdapter):
    """Terminal login."""
