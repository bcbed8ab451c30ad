"""``beeyard status``: what runs on this machine."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from training.cli.arguments import Arguments
from training.cli.output import Output, table
from training.client.status import Status, status_is_alive, status_read
from training.client.store import home_open

_STALE_SECONDS = 15.0


def status(args: Arguments, out: Output) -> int:
    """Show each run of this home, alive or not."""
    home = home_open(args.home)
    entries = [_entry(path) for path in home.status_files()]
    known = [entry for entry in entries if entry is not None]
    rows = [_row(entry) for entry in known]
    lines = table([("RUN", "SITE", "PROCESS", "ROLE", "STATE", "EPOCH", "SAMPLES"), *rows])
    if not known:
        lines = [f"Nothing was started from {home.root} yet. `beeyard join URL` does."]
    for entry in known:
        if entry["error"]:
            lines.append(f"{entry['run']}: {entry['error']['detail']}. {entry['error']['remedy']}")
    out.result(known, lines)
    return 0


def _entry(path: Path) -> dict[str, Any] | None:
    status = status_read(path)
    if status is None:
        return None
    fields = status.model_dump(mode="json")
    names = {"run": path.parent.name, "site": path.parent.parent.name}
    return names | fields | {"alive": status_is_alive(status), "state": _state(status)}


def _state(status: Status) -> str:
    if not status_is_alive(status):
        return "stopped" if status.error is None else "failed"
    age = (datetime.now(UTC) - status.updated_at).total_seconds()
    return status.phase if age < _STALE_SECONDS else f"no news for {age:.0f} s"


def _row(entry: dict[str, Any]) -> tuple[str, ...]:
    return (
        entry["run"],
        entry["site"],
        str(entry["pid"]) if entry["alive"] else "-",
        entry["role"],
        entry["state"],
        str(entry["epoch"]),
        f"{entry['samples_total']:,}",
    )
