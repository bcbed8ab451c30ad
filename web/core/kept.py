"""What one process keeps between answers: bounded, and only as long as the caller calls it true."""

from collections import OrderedDict
from collections.abc import Hashable
from threading import Lock
from typing import Generic, TypeVar

V = TypeVar("V")


class Kept(Generic[V]):
    """At most ``size`` values; those that were asked for longest ago are forgotten first."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._lock = Lock()
        self._values: OrderedDict[Hashable, V] = OrderedDict()

    def find(self, key: Hashable) -> V | None:
        """Return what is kept under ``key``; whether it is still good is the caller's to say."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
            return self._values.get(key)

    def keep(self, key: Hashable, value: V) -> None:
        """Keep ``value`` in the place of what was there."""
        with self._lock:
            self._values[key] = value
            self._values.move_to_end(key)
            while len(self._values) > self._size:
                self._values.popitem(last=False)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._values.clear()
