"""What ``join`` and ``coordinator`` share: whose process this is, and how it begins again."""

import os
import platform
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import timedelta

from pydantic import BaseModel

from training.cli.arguments import Arguments
from training.client.address import SiteAddress, run_address_parse
from training.client.credentials import StoredLogin, given_token_read
from training.client.gate import Gate
from training.client.hardware import hardware_read
from training.client.http import Credentials, PlatformClient
from training.client.join import Admission, Joiner
from training.client.retry import Retry
from training.client.store import Home, home_open
from training.protocol.config import RunConfig
from training.protocol.envelope import sign
from training.protocol.states import Role

PATIENCE_SECONDS = 60.0
_LIFETIME = timedelta(days=365)
_RESTARTS = "BEEYARD_RESTARTS"
_IMMATERIAL = {"version", "previous_sha256", "title", "min_trainer_version", "evaluation"}


@dataclass(frozen=True)
class Seat:
    """A device in a run: its home, its login and its client."""

    address: SiteAddress
    home: Home
    credentials: Credentials
    joiner: Joiner

    @property
    def client(self) -> PlatformClient:
        return self.joiner.client

    def sign(self, body: BaseModel, typ: str) -> str:
        """Sign a body with the device key, dated with the site's clock."""
        return sign(
            body,
            typ=typ,
            key=self.home.device_key(),
            issuer=self.address.origin,
            lifetime=_LIFETIME,
            now=self.client.clock.now(),
        )


@contextmanager
def seat_open(
    args: Arguments, *, role: Role, stop: threading.Event | None = None
) -> Iterator[Seat]:
    """Take the seat that the command line describes; nothing is sent yet."""
    address = run_address_parse(args.url or "")
    home = home_open(args.home)
    credentials = given_token_read(args.token_file) or StoredLogin(home.site(address))
    retry = Retry(PATIENCE_SECONDS, stop)
    with closing(PlatformClient(address, credentials=credentials, retry=retry)) as client:
        joiner = Joiner(
            client,
            home,
            role=role,
            device_name=args.name or platform.node(),
            hardware=hardware_read(),
        )
        yield Seat(address, home, credentials, joiner)


def gate_open(seat: Seat, admission: Admission) -> Gate:
    """Return what this device's peer knows of passes and revoked peers; kept in the run's folder.

    Raises:
        ClientError: the folder cannot be written.
    """
    return Gate(
        seat.joiner.folder,
        config=admission.config.body,
        keys=admission.trust.keys,
        peer_pass=admission.peer_pass.token,
        clock=seat.client.clock,
    )


def bind_address(args: Arguments, address: SiteAddress) -> str:
    """Return where to listen: a site on this machine has its swarm on this machine too."""
    return args.bind or ("127.0.0.1" if address.is_loopback else "0.0.0.0")  # noqa: S104


def is_restart_needed(old: RunConfig, new: RunConfig) -> bool:
    """Return whether a new config version changes anything for a running process."""
    return old.model_dump(exclude=_IMMATERIAL) != new.model_dump(exclude=_IMMATERIAL)


def restarts_read() -> int:
    """Return how often this process began again in a row."""
    text = os.environ.get(_RESTARTS, "0")
    return int(text) if text.isdigit() else 0


def process_restart(number: int) -> None:
    """Begin again in a fresh interpreter under the same process id; does not return.

    hivemind keeps state in classes and modules, which a second start in one interpreter meets.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os.environ[_RESTARTS] = str(number)
    os.execv(sys.executable, sys.orig_argv)  # noqa: S606 - the very command that was given
