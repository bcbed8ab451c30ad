"""Looking for a group: who only assists makes no group good enough."""

from typing import Any

from hivemind.averaging.allreduce import AveragingMode
from hivemind.averaging.matchmaking import Matchmaking
from hivemind.utils import MSGPackSerializer

_ENOUGH = 2
"""Peers with something to average."""


class Pairing(Matchmaking):
    """hivemind's matchmaking, in which a group that is no average does not close.

    When a leader's time is up, hivemind averages with whoever is there, from two peers on. With an
    auxiliary peer that is one trainer and its helper, again and again, while the other trainer
    comes a moment later and stays alone.
    """

    @property
    def min_group_size(self) -> int:
        """The size from which a group is good enough; asked when its time is up."""
        return self._least if self._num_averaging() >= _ENOUGH else len(self.current_followers) + 2

    @min_group_size.setter
    def min_group_size(self, size: int) -> None:
        self._least = size

    def _num_averaging(self) -> int:
        if self.step_control is None:
            return _ENOUGH
        gathered = [self.step_control.data_for_gather]
        gathered += [request.gather for request in self.current_followers.values()]
        return sum(not _assists(data) for data in gathered)


def _assists(data: bytes) -> bool:
    """Whether a member of a group says of itself that it has nothing to average."""
    try:
        values: Any = MSGPackSerializer.loads(data)
        return AveragingMode(values[1]) is AveragingMode.AUX
    except Exception:  # noqa: BLE001 - another peer wrote it: whatever it is, the group is judged
        return False
