"""Where the files of saved states are, and whether this machine has them."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from django.conf import settings

from web.runs.models import Checkpoint


@dataclass(frozen=True)
class SavedState:
    """A checkpoint to list; each file says by ``is_here`` whether it can be downloaded."""

    epoch: int
    lineage: int
    config_version: int
    saved_at: datetime
    files: list[dict[str, Any]]

    @property
    def is_here(self) -> bool:
        return all(file["is_here"] for file in self.files)


def saved_file_path(slug: str, checkpoint: Checkpoint, name: str) -> Path | None:
    """Return where a file would be on this machine, None for a name that leads elsewhere."""
    folder = Path(settings.CHECKPOINTS_DIR) / slug / f"{checkpoint.lineage}-{checkpoint.epoch:08d}"
    path = (folder / name).resolve()  # names come from a manifest that others wrote
    return path if path.parent == folder.resolve() else None


def saved_states(slug: str, checkpoints: Iterable[Checkpoint]) -> list[SavedState]:
    """Return the checkpoints of a run as they are listed."""
    return [
        SavedState(
            epoch=c.epoch,
            lineage=c.lineage,
            config_version=c.config_version,
            saved_at=c.saved_at,
            files=[file | {"is_here": _is_here(slug, c, str(file["name"]))} for file in c.files],
        )
        for c in checkpoints
    ]


def _is_here(slug: str, checkpoint: Checkpoint, name: str) -> bool:
    path = saved_file_path(slug, checkpoint, name)
    return path is not None and path.is_file()
