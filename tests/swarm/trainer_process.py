"""Our trainer without a site: ``python -m tests.swarm.trainer_process FOLDER MIN_EPOCH PEERS…``.

What the trainer says goes to ``FOLDER/events.jsonl``, its addresses are in its DHT records. A
file ``FOLDER/pause`` pauses it; with a file ``FOLDER/assist`` it is an auxiliary peer. SIGTERM
makes it leave well; the exit code is the trainer's.
"""

import json
import signal
import sys
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from training.client.errors import ClientError
from training.client.swarm_key import swarm_key_load_or_create
from training.protocol.config import RunConfig
from training.protocol.envelope import sign
from training.protocol.keys import key_generate
from training.protocol.names import TYP_METRICS
from training.protocol.states import Command, Role
from training.trainer.run import trainer_run
from training.trainer.session import TrainerSession, TrainerStats

PACE = 0.1
"""Seconds between micro-steps: epochs must be long beside matchmaking."""


class EventFile:
    """A user interface that others can read."""

    def __init__(self, path: Path) -> None:
        self.file = path.open("a", buffering=1)

    def write(self, kind: str, **values: object) -> None:
        self.file.write(json.dumps({"kind": kind, "at": time.time(), **values}) + "\n")

    def phase(self, text: str) -> None:
        self.write("phase", text=text)

    def progress(self, stats: TrainerStats) -> None:
        time.sleep(PACE)  # the training thread waits for its user interface
        self.write("progress", epoch=stats.epoch, loss=stats.loss, peers=stats.num_peers)

    def line(self, text: str) -> None:
        self.write("line", text=text)


def pause_watch(folder: Path, session: TrainerSession) -> None:
    while True:
        is_wanted = (folder / "pause").exists()
        session.control.command(Command.PAUSE if is_wanted else Command.RESUME)
        time.sleep(0.2)


def main(folder: Path, min_epoch: int, peers: list[str]) -> int:
    device = key_generate()
    session = TrainerSession(
        config=RunConfig.model_validate_json((folder / "config.json").read_text()),
        key=swarm_key_load_or_create(folder / "swarm.key"),
        sign_metrics=lambda metrics: sign(
            metrics,
            typ=TYP_METRICS,
            key=device,
            issuer="http://site",
            lifetime=timedelta(minutes=2),
            now=datetime.now(UTC),
        ),
        bootstrap_peers=tuple(peers),
        min_epoch=min_epoch,
        artifacts=folder,
        work_dir=folder,
        role=Role.AUXILIARY if (folder / "assist").exists() else Role.TRAINER,
        threads=1,
        micro_batch=8,
    )
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: session.control.stop())
    threading.Thread(target=pause_watch, args=(folder, session), daemon=True).start()
    ui = EventFile(folder / "events.jsonl")
    try:
        return trainer_run(session, ui=ui)
    except ClientError as error:
        ui.write("error", code=error.code, text=error.detail)
        return int(error.exit_code)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]))
