"""The beeyard home: a device's keys, logins and runs on disk.

``device.jwk`` and ``swarm.key`` are the device; ``sites/<host_port>/`` holds the login and the
pinned keys of a site; ``runs/<host_port>/<slug>/`` what belongs to one run.
"""

import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from joserfc.jwk import OKPKey

from training.client.address import SiteAddress
from training.client.errors import ClientError, ExitCode, store_error
from training.client.files import file_broken, file_write, folder_make
from training.client.swarm_key import SwarmKey, swarm_key_load_or_create
from training.protocol.keys import key_dump, key_generate, key_load
from training.protocol.names import ENV_HOME

_SITE_THREADS = threading.Lock()
"""Record locks do not keep the threads of one process apart."""


@dataclass(frozen=True)
class Home:
    """The folder of one device."""

    root: Path

    def device_key(self) -> OKPKey:
        """Return the device's signing key, made at the first call."""
        path = self.root / "device.jwk"
        if not path.exists():
            file_write(path, key_dump(key_generate()).encode())
        try:
            key = key_load(path.read_text())
        except (OSError, ValueError) as error:
            raise store_error(
                f"{path} is damaged ({error})",
                f"Delete {path} and run `beeyard logout`: this machine becomes a new device.",
            ) from error
        if not key.is_private:
            raise file_broken(path, "the private half of the key is missing")
        return key

    def swarm_key(self) -> SwarmKey:
        """Return the key by which the swarm knows this device, made at the first call."""
        return swarm_key_load_or_create(self.root / "swarm.key")

    def keys_forget(self) -> bool:
        """Delete both keys, so that new ones are made; tell whether there were any."""
        paths = [self.root / "device.jwk", self.root / "swarm.key"]
        found = [path for path in paths if path.exists()]
        for path in found:
            path.unlink()
        return bool(found)

    def site(self, address: SiteAddress) -> Path:
        """Return the folder of a site."""
        return self.root / "sites" / address.folder

    def run(self, address: SiteAddress) -> Path:
        """Return the folder of the run that ``address`` names."""
        return self.root / "runs" / address.folder / (address.slug or "")

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    def status_files(self) -> list[Path]:
        """Return the status files of all runs that were ever started here."""
        return sorted(self.root.glob("runs/*/*/status.json"))


def home_open(path: str | None) -> Home:
    """Return the home at ``path``, in $BEEYARD_HOME, or in ``~/.beeyard``; made when missing."""
    try:
        chosen = Path(path or os.environ.get(ENV_HOME) or "~/.beeyard").expanduser().resolve()
    except RuntimeError as error:  # no home folder for this user
        raise store_error(str(error), "Name a folder with --home.") from error
    folder_make(chosen)
    if not os.access(chosen, os.W_OK | os.X_OK):
        raise store_error(
            f"the folder {chosen} is not writable", "Choose a folder of yours with --home."
        )
    return Home(chosen)


@contextmanager
def run_locked(folder: Path) -> Iterator[None]:
    """Hold the run's folder for this process alone.

    A POSIX record lock belongs to the process and dies with it: children that a killed trainer
    left behind do not keep it.

    Raises:
        ClientError: another process has it; the sentence names its pid.
    """
    with _record_lock(folder / "lock", wait=False):
        yield


@contextmanager
def site_locked(folder: Path) -> Iterator[None]:
    """Hold the site's login while a token is exchanged; waits for other processes."""
    with _SITE_THREADS, _record_lock(folder / "lock", wait=True):
        yield


@contextmanager
def _record_lock(path: Path, *, wait: bool) -> Iterator[None]:
    folder_make(path.parent)
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.lockf(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except OSError as error:
            holder = os.read(handle, 20).decode(errors="replace").strip() or "unknown"
            raise ClientError(
                "already_running",
                f"beeyard is running in {path.parent} already (process {holder})",
                f"Stop it with `kill {holder}`, or start this one with another --home.",
                exit_code=ExitCode.USAGE,
            ) from error
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(handle)
