"""What all tests share."""

from pathlib import Path

import pytest


def pytest_configure(config: pytest.Config) -> None:
    from django.conf import settings

    Path(settings.STATIC_ROOT).mkdir(parents=True, exist_ok=True)
