"""System checks: a setting that is missing or unsafe is a sentence, not a traceback."""

import ipaddress
import os
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register

_SECRET_LENGTH = 32


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address (pure)."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


@register(Tags.security)
def address_check(**options: Any) -> list[CheckMessage]:
    """The public address is one, and what leaves the machine is encrypted."""
    public = urlsplit(settings.PUBLIC_URL)
    found: list[CheckMessage] = []
    if public.scheme not in ("http", "https") or not public.hostname or public.path:
        found.append(
            Error(
                f"BEEYARD_PUBLIC_URL is not the address of a site: {settings.PUBLIC_URL}",
                hint="Give scheme and host only, such as https://train.example.org",
                id="project.E001",
            )
        )
    elif public.scheme == "http" and not (is_loopback(settings.BIND) or settings.BEHIND_PROXY):
        found.append(
            Warning(
                f"The site listens on {settings.BIND} without TLS: passwords and tokens are sent "
                "in the clear.",
                hint="Put a TLS proxy in front, set BEEYARD_PUBLIC_URL to its https address and "
                "BEEYARD_BEHIND_PROXY=1, or bind to 127.0.0.1.",
                id="project.W001",
            )
        )
    return found


@register(Tags.security)
def secret_check(**options: Any) -> list[CheckMessage]:
    """The secret key cannot be guessed, and debugging is for this machine only."""
    found: list[CheckMessage] = []
    if len(settings.SECRET_KEY) < _SECRET_LENGTH:
        found.append(
            Error(
                f"BEEYARD_SECRET_KEY has fewer than {_SECRET_LENGTH} characters.",
                hint="Unset it: a long one is made once and kept in the data folder.",
                id="project.E002",
            )
        )
    if settings.DEBUG and not is_loopback(settings.BIND):
        found.append(
            Error(
                f"BEEYARD_DEBUG is on while the site listens on {settings.BIND}: error pages "
                "would show settings to strangers.",
                hint="Unset BEEYARD_DEBUG, or bind to 127.0.0.1.",
                id="project.E003",
            )
        )
    return found


@register(Tags.files)
def data_folder_check(**options: Any) -> list[CheckMessage]:
    """The data folder can be written, and its keys are nobody else's."""
    folder, keys = Path(settings.DATA_DIR), Path(settings.KEYS_DIR)
    found: list[CheckMessage] = []
    parent = next(path for path in (folder, *folder.parents) if path.exists())
    if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
        found.append(
            Error(
                f"The data folder {folder} cannot be written.",
                hint="Set BEEYARD_DATA to a folder of the account that runs the site.",
                id="project.E004",
            )
        )
    found += [
        Error(
            f"The secret {path.name} can be read by other accounts of this machine.",
            hint=f"chmod 600 {path}",
            id="project.E005",
        )
        for path in (sorted(keys.iterdir()) if keys.is_dir() else ())
        if path.is_file() and path.stat().st_mode & 0o077
    ]
    return found


@register(Tags.compatibility)
def verification_check(**options: Any) -> list[CheckMessage]:
    """E-mail verification is one of the words that allauth knows."""
    if settings.ACCOUNT_EMAIL_VERIFICATION in ("none", "optional", "mandatory"):
        return []
    return [
        Error(
            f"BEEYARD_EMAIL_VERIFICATION is {settings.ACCOUNT_EMAIL_VERIFICATION!r}.",
            hint="Use none, optional or mandatory.",
            id="project.E006",
        )
    ]
