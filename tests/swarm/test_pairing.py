"""Which groups close when their time is up."""

from types import SimpleNamespace

import pytest
from hivemind.averaging import averager as hivemind_averager
from hivemind.averaging.allreduce import AveragingMode
from hivemind.utils import MSGPackSerializer

import training.swarm.averaging
from training.swarm.pairing import Pairing

assert training.swarm.averaging
NODE, CLIENT, AUX = AveragingMode.NODE, AveragingMode.CLIENT, AveragingMode.AUX


def gathered(mode: AveragingMode | bytes) -> bytes:
    if isinstance(mode, bytes):
        return mode
    return bytes(MSGPackSerializer.dumps([1.0, mode.value, b""]))


@pytest.mark.parametrize(
    ("leader", "followers", "closes"),
    [
        (NODE, [], False),
        (NODE, [NODE], True),
        (NODE, [CLIENT], True),
        (NODE, [AUX], False),
        (AUX, [NODE], False),
        (AUX, [AUX, NODE], False),
        (AUX, [NODE, NODE], True),
        (NODE, [AUX, NODE], True),
        (NODE, [b"\xc1 no message"], True),
        (NODE, [b""], True),
    ],
)
def test_a_group_closes_with_two_that_have_something_to_average(
    leader: AveragingMode, followers: list[AveragingMode | bytes], closes: bool
) -> None:
    pairing = Pairing.__new__(Pairing)
    pairing.min_group_size = 2
    pairing.step_control = SimpleNamespace(data_for_gather=gathered(leader))
    pairing.current_followers = {
        str(number): SimpleNamespace(gather=gathered(mode)) for number, mode in enumerate(followers)
    }
    assert (len(followers) + 1 >= pairing.min_group_size) is closes


def test_averagers_look_for_groups_this_way() -> None:
    assert hivemind_averager.Matchmaking is Pairing
