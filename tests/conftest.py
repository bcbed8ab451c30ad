"""What all tests share: people, outside services, and what happens when one is missing."""

import os
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

from tests.people import alice, bob, charlie, mallory
from tests.servers import postgres_url, redis_server

__all__ = ["alice", "bob", "charlie", "mallory", "postgres_url", "redis_server"]

REQUIRE_ALL = os.environ.get("BEEYARD_REQUIRE_ALL") == "1"
"""In CI nothing may be skipped silently."""

hypothesis.settings.register_profile(
    "beeyard",
    deadline=None,  # two busy cores make single examples slow
    max_examples=60,
    derandomize=True,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("beeyard")


def pytest_configure(config: pytest.Config) -> None:
    from django.conf import settings

    Path(settings.STATIC_ROOT).mkdir(parents=True, exist_ok=True)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """With BEEYARD_REQUIRE_ALL=1 a test that skips itself has failed."""
    report = yield
    if REQUIRE_ALL and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped, but everything is required: {report.longrepr}"
    return report


@pytest.fixture(autouse=True, scope="session")
def _databases_can_be_emptied() -> Iterator[None]:
    """Tests with real transactions end with empty tables, which ledger and audit log refuse."""
    from django.test import TransactionTestCase

    from web.contributions import append_only as ledger
    from web.core import append_only as audit

    original = TransactionTestCase._fixture_teardown

    def teardown(case: TransactionTestCase) -> None:
        for triggers in (ledger, audit):
            triggers.triggers_drop()
        try:
            original(case)
        finally:
            for triggers in (ledger, audit):
                triggers.triggers_install()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TransactionTestCase, "_fixture_teardown", teardown)
        yield


@pytest.fixture(autouse=True)
def _clean_cache() -> Iterator[None]:
    """Counters, codes and single-use marks of one test are not seen by the next."""
    from django.core.cache import cache

    from web.core.events import MEMORY_STORE

    yield
    cache.clear()
    MEMORY_STORE.clear()
