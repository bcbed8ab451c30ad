"""One installation for all end-to-end tests; a broken stop fails the last of them."""

from collections.abc import Iterator

import pytest

from tests.e2e.installation import Installation, free_port, wait_for


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    installation = Installation(tmp_path_factory.mktemp("site") / "data", free_port())
    installation.start()
    try:
        wait_for("the site's first answer", lambda: installation.get("/healthz"), 90)
        yield installation
    finally:
        if installation.process is not None and installation.process.poll() is None:
            installation.stop()
        for process in installation.processes():
            process.kill()
        print(installation.log()[-4000:])  # noqa: T201 - shown by pytest when a test fails


@pytest.fixture(scope="session")
def training_site(site: Installation) -> Installation:
    """The site after its first finished epoch."""
    wait_for("the first epoch", lambda: site.state()["epoch"] >= 1, 240)
    return site
