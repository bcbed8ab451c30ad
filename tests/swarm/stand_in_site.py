"""What a coordinator needs of a site, kept in a folder so that a test can look from outside."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.swarm.stand_in_passes import PassOffice
from training.client.errors import UNREACHABLE, PlatformError
from training.client.files import json_read, json_write
from training.protocol.api import (
    CheckpointOut,
    CheckpointRequest,
    SnapshotRequest,
    SnapshotResponse,
)
from training.protocol.claims import CheckpointManifest
from training.protocol.envelope import peek_body
from training.protocol.metrics import SwarmSnapshot


def _body(token: str) -> str:
    names = ("iss", "iat", "exp", "jti")
    return json.dumps({k: v for k, v in peek_body(token).items() if k not in names})


class StandInSite:
    """Ledger, newest snapshot and checkpoints; ``down`` in the folder makes it unreachable."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.passes = PassOffice(folder)

    @property
    def state(self) -> dict[str, Any]:
        empty: dict[str, Any] = {"seq": 0, "ledger": {}, "repeats": 0, "epochs": [], "seqs": []}
        return json_read(self.folder / "state.json") or empty

    @property
    def snapshot(self) -> SwarmSnapshot | None:
        found = json_read(self.folder / "snapshot.json")
        return None if found is None else SwarmSnapshot.model_validate_json(json.dumps(found))

    def snapshots(self, since: int = 0) -> list[SwarmSnapshot]:
        """Return the accepted snapshots but the first ``since``."""
        path = self.folder / "snapshots.jsonl"
        lines = path.read_text().split("\n")[:-1] if path.exists() else []
        return [SwarmSnapshot.model_validate_json(line) for line in lines[since:]]

    @property
    def checkpoints(self) -> list[int]:
        return list((json_read(self.folder / "checkpoints.json") or {}).get("epochs", []))

    def ledger(self) -> dict[int, dict[str, int]]:
        return {int(epoch): rows for epoch, rows in self.state["ledger"].items()}

    def set_down(self, is_down: bool) -> None:
        flag = self.folder / "down"
        flag.touch() if is_down else flag.unlink(missing_ok=True)

    def post_snapshot(self, request: SnapshotRequest) -> SnapshotResponse:
        self._refuse_when_down()
        snapshot = SwarmSnapshot.model_validate_json(_body(request.snapshot))
        state = self.state
        accepted = snapshot.seq > state["seq"]
        if accepted:
            state["seq"] = snapshot.seq
            state["seqs"].append(snapshot.seq)
            state["epochs"].append(snapshot.epoch)
            for report in snapshot.finished_epochs:
                rows = {w.key_thumbprint: w.samples for w in report.work}
                known = state["ledger"].setdefault(str(report.epoch), rows)
                state["repeats"] += known != rows
            json_write(self.folder / "state.json", state)
            json_write(self.folder / "snapshot.json", snapshot.model_dump(mode="json"))
            with (self.folder / "snapshots.jsonl").open("a") as file:
                file.write(snapshot.model_dump_json() + "\n")
        newest = max(map(int, state["ledger"]), default=None)
        return SnapshotResponse(
            accepted=accepted,
            last_seq=state["seq"],
            last_epoch=newest,
            revocations=self.passes.revocations,
        )

    def post_checkpoint(self, request: CheckpointRequest) -> CheckpointOut:
        self._refuse_when_down()
        manifest = CheckpointManifest.model_validate_json(_body(request.manifest))
        epochs = sorted({*self.checkpoints, manifest.epoch})
        json_write(self.folder / "checkpoints.json", {"epochs": epochs})
        return CheckpointOut(
            epoch=manifest.epoch,
            lineage=manifest.lineage,
            config_version=manifest.config_version,
            saved_at=datetime.now(UTC),
            files=manifest.files,
            manifest=request.manifest,
        )

    def _refuse_when_down(self) -> None:
        if (self.folder / "down").exists():
            raise PlatformError(UNREACHABLE, "the site is down", "Wait.", status=0)
