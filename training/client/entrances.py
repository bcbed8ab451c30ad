"""The last known addresses by which a run's swarm can be entered."""

from pathlib import Path

from training.client.errors import ClientError
from training.client.files import json_read, json_write


def entrances_write(folder: Path, addresses: tuple[str, ...]) -> None:
    """Keep the addresses in the run's folder."""
    json_write(folder / "entrances.json", {"addresses": list(addresses)})


def entrances_read(folder: Path) -> tuple[str, ...]:
    """Return the addresses, none when there is no usable file."""
    try:
        data = json_read(folder / "entrances.json") or {}
    except ClientError:
        return ()
    addresses = data.get("addresses", ())
    return tuple(str(item) for item in addresses) if isinstance(addresses, list) else ()
