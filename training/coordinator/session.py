"""What a coordinator is given when it starts: its run, its keys, and the site's calls."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import BaseModel

from training.client.clock import SiteClock
from training.client.gate import Gate
from training.client.swarm_key import SwarmKey
from training.protocol.api import (
    CheckpointOut,
    CheckpointRequest,
    SnapshotRequest,
    SnapshotResponse,
)
from training.protocol.config import RunConfig


@dataclass(frozen=True)
class CoordinatorSession:
    """One coordinator in one run; made by the command line after joining."""

    config: RunConfig
    key: SwarmKey
    sign: Callable[[BaseModel, str], str]
    """Sign a body with the coordinator's device key as a JWS of the given ``typ``."""
    post_snapshot: Callable[[SnapshotRequest], SnapshotResponse]
    post_checkpoint: Callable[[CheckpointRequest], CheckpointOut]
    bootstrap_peers: tuple[str, ...]
    """Other entrances to the swarm that the site knows; may be empty or out of date."""
    artifacts: Path
    """Folder with the config's files, hashes checked."""
    work_dir: Path
    """Kept between starts: ``status.json``, the journal, the snapshot number, known peers."""
    checkpoints_dir: Path
    """Holds one folder ``<lineage>-<epoch>`` per checkpoint."""
    bind: str = "127.0.0.1"
    port: int = 0
    gate: Gate | None = None
    """Passes and lists; needed unless the config's admission is open."""
    clock: SiteClock = field(default_factory=SiteClock)
    announce: tuple[str, ...] = ()
    """Multiaddresses to tell others instead of the ones listened on."""
