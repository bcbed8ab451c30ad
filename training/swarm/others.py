"""How far the other trainers of a run are, by what they report of themselves."""

from collections.abc import Mapping
from typing import Any

from hivemind import DHT

_READ_SECONDS = 3.0


def others_epochs(dht: DHT, key: str, *, horizon: float) -> list[int]:
    """Return the epochs of other trainers whose newest report was made after ``horizon``.

    No answer counts as nobody: whoever asks goes on alone. ``horizon`` is in the swarm's time.
    """
    try:
        found = dht.get(key, latest=True, return_future=True).result(_READ_SECONDS)
    except Exception:  # noqa: BLE001 - a DHT that does not answer knows of nobody
        return []
    records = found.value.values() if found and isinstance(found.value, dict) else ()
    own = dht.peer_id.to_bytes()
    values: list[Mapping[str, Any]] = [
        record.value for record in records if isinstance(record.value, dict)
    ]
    return [int(v["epoch"]) for v in values if v["peer_id"] != own and v["time"] > horizon]


def epoch_of_half(epochs: list[int]) -> int | None:
    """Return the highest epoch that at least half of them have reached; None when there are none.

    One that is ahead of all, or says that it is, must not make everybody follow.
    """
    return sorted(epochs, reverse=True)[(len(epochs) - 1) // 2] if epochs else None
