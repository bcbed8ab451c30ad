"""What every template may use."""

from typing import Any

from django.conf import settings
from django.http import HttpRequest

from training.protocol.names import TRAINER_VERSION


def site(request: HttpRequest) -> dict[str, Any]:
    """Return the site's address and version."""
    return {"public_url": settings.PUBLIC_URL, "site_version": TRAINER_VERSION}
