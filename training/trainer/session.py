"""What a trainer is given when it starts: its run, its keys, its place; and its user interface."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from training.client.clock import SiteClock
from training.client.gate import Gate
from training.client.swarm_key import SwarmKey
from training.protocol.claims import CheckpointManifest
from training.protocol.config import RunConfig
from training.protocol.metrics import PeerMetrics
from training.protocol.states import Role
from training.trainer.control import TrainerControl


@dataclass(frozen=True)
class TrainerSession:
    """One device in one run; made by the command line after joining.

    The heartbeat to the site is the caller's: it runs in a thread of its own, reports
    ``control.progress()`` and passes commands to ``control.command``. The trainer needs no site
    while it trains.
    """

    config: RunConfig
    key: SwarmKey
    sign_metrics: Callable[[PeerMetrics], str]
    """Sign with the device key; called from the publisher's thread."""
    bootstrap_peers: tuple[str, ...]
    """Multiaddresses of peers that are in the swarm now; empty only for the first peer ever."""
    min_epoch: int
    """A swarm that is behind this epoch is the wrong one."""
    artifacts: Path
    """Folder with the config's files, by name or by content hash."""
    work_dir: Path
    """Gets ``status.json`` and ``swarm.log``."""
    bind: str = "127.0.0.1"
    port: int = 0
    client_mode: bool = False
    role: Role = Role.TRAINER
    """An auxiliary peer needs connections from others: it cannot be in client mode."""
    announce: tuple[str, ...] = ()
    threads: int | None = None
    """CPU threads of torch; None: as many as this process may use."""
    micro_batch: int | None = None
    """Samples per micro-step; None: chosen for the device."""
    checkpoint: CheckpointManifest | None = None
    """The newest that is known; a downloaded state is compared with it."""
    control: TrainerControl = field(default_factory=TrainerControl)
    gate: Gate | None = None
    """Passes and lists; needed unless the config's admission is open. The heartbeat feeds it."""
    clock: SiteClock = field(default_factory=SiteClock)
    """How far the site's clock is from this machine's; measured with every answer of the site."""
    bootstrap_refresh: Callable[[], Sequence[str]] | None = None
    """Asks for newer bootstrap peers before another attempt to join."""

    @property
    def assists(self) -> bool:
        """Whether it only averages what others send."""
        return self.role is Role.AUXILIARY


@dataclass(frozen=True)
class TrainerStats:
    """One moment of training, for people to look at."""

    phase: str
    epoch: int
    num_peers: int
    samples_epoch: int
    """Of the whole swarm in the current epoch, as far as known here."""
    target_batch_size: int
    samples_own: int
    """Of this peer in the current epoch."""
    samples_total: int
    """Of this peer since it started."""
    samples_per_second: float
    loss: float | None


class TrainerUI(Protocol):
    """Where a trainer says what it does; called from the training thread, must return soon."""

    def phase(self, text: str) -> None:
        """Say what goes on now, in a few words."""
        ...

    def progress(self, stats: TrainerStats) -> None:
        """Show numbers; called after each micro-step."""
        ...

    def line(self, text: str) -> None:
        """Tell an event that should stay visible, such as a finished epoch."""
        ...
