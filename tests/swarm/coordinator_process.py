"""A coordinator in a process of its own: ``python -m tests.swarm.coordinator_process FOLDER PORT``.

``FOLDER/config.json`` is the run's config; further arguments are bootstrap peers.
"""

import logging
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pydantic import BaseModel

from tests.swarm.stand_in_passes import PassOffice
from tests.swarm.stand_in_site import StandInSite
from training.client.swarm_key import swarm_key_load_or_create
from training.coordinator.service import coordinator_run
from training.coordinator.session import CoordinatorSession
from training.protocol.config import RunConfig
from training.protocol.envelope import sign
from training.protocol.keys import key_generate
from training.protocol.states import Role


def main(folder: Path, port: int, peers: list[str]) -> int:
    logging.basicConfig(filename=folder / "coordinator.log", level=logging.INFO)
    device, site = key_generate(), StandInSite(folder / "site")

    def signed(body: BaseModel, typ: str) -> str:
        now, lifetime = datetime.now(UTC), timedelta(minutes=5)
        return sign(body, typ=typ, key=device, issuer="test", lifetime=lifetime, now=now)

    config = RunConfig.model_validate_json((folder / "config.json").read_text())
    key, office = swarm_key_load_or_create(folder / "swarm.key"), PassOffice(folder / "site")
    gate = office.gate(folder / "work", config, key, role=Role.COORDINATOR)
    office.beat(gate, config, key, seconds=config.report.heartbeat_seconds)
    return coordinator_run(
        CoordinatorSession(
            config=config,
            key=key,
            gate=gate,
            sign=signed,
            post_snapshot=site.post_snapshot,
            post_checkpoint=site.post_checkpoint,
            bootstrap_peers=tuple(peers),
            artifacts=folder,
            work_dir=folder / "work",
            checkpoints_dir=folder / "checkpoints",
            port=port,
        )
    )


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]))
