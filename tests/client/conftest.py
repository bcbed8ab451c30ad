"""A running stand-in site, and bob's machine that talks to it."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.client.stand_in_site import StandInSite
from training.client.address import run_address_parse
from training.client.credentials import GivenToken
from training.client.files import file_write
from training.client.http import Credentials, PlatformClient
from training.client.join import Joiner
from training.client.retry import Retry
from training.client.store import Home
from training.client.swarm_key import swarm_key_load_or_create

ClientMaker = Callable[..., PlatformClient]


@pytest.fixture
def site() -> Iterator[StandInSite]:
    with StandInSite() as running:
        yield running


@pytest.fixture(scope="session")
def identity(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """An identity file: making an RSA key takes longer than most tests."""
    return swarm_key_load_or_create(tmp_path_factory.mktemp("keys") / "key").path.read_bytes()


@pytest.fixture
def home(tmp_path: Path, identity: bytes) -> Home:
    file_write(tmp_path / "home" / "swarm.key", identity, mode=0o400)
    return Home(tmp_path / "home")


@pytest.fixture
def client_make(site: StandInSite) -> Iterator[ClientMaker]:
    """Make clients of the site that give up at once, unless a test wants patience."""
    made: list[PlatformClient] = []

    def make(
        credentials: Credentials | None = None, *, patience: float = 0.0, url: str = ""
    ) -> PlatformClient:
        address = run_address_parse(url or site.run_url)
        client = PlatformClient(
            address,
            credentials=credentials or GivenToken("good-token"),
            retry=Retry(patience),
        )
        made.append(client)
        return client

    yield make
    for client in made:
        client.close()


@pytest.fixture
def joiner(client_make: ClientMaker, home: Home) -> Joiner:
    return Joiner(client_make(), home, device_name="bob's laptop")
