"""Lines of the feed."""

from datetime import UTC, datetime

from training.protocol.api import LivePeer
from training.protocol.metrics import EpochReport
from training.protocol.states import PeerState, Reach
from web.monitoring.feed import EpochLine, epoch_lines, peer_lines

NOW = datetime(2026, 1, 2, tzinfo=UTC)


def peer(name: str, state: PeerState = PeerState.TRAINING, device: str = "") -> LivePeer:
    return LivePeer(
        name=name, device=device, state=state, reach=Reach.DIRECT, epoch=0,
        samples_accumulated=0, samples_per_second=0, seen_at=NOW,
    )  # fmt: skip


def line(epoch: int, loss: float | None = 5.31234, seconds: float = 18.2) -> EpochLine:
    report = EpochReport(epoch=epoch, finished_at=NOW, loss=loss)
    return EpochLine(report, samples=5120, num_peers=epoch, seconds=seconds)


def test_who_comes_and_goes_is_told() -> None:
    old = {"a": peer("bob", device="laptop"), "b": peer("charlie")}
    new = {"a": peer("bob", PeerState.LEFT, "laptop"), "c": peer("dora"),
           "b": peer("charlie", PeerState.BANNED)}  # fmt: skip
    assert [(x.kind, x.text) for x in peer_lines(old, new)] == [
        ("peer.left", "bob (laptop) left"),
        ("peer.joined", "dora joined"),
        ("peer.banned", "charlie was banned"),
    ]
    assert [x.text for x in peer_lines({"a": peer("bob")}, {})] == ["bob left"]
    assert peer_lines(new, new) == []


def test_crowds_are_summed_up() -> None:
    crowd = {str(i): peer(f"v{i}") for i in range(6)}
    assert [x.text for x in peer_lines({}, crowd)] == ["6 peers joined"]
    banned = {key: peer("v", PeerState.BANNED) for key in crowd}
    assert [x.text for x in peer_lines(crowd, banned)] == ["6 peers were banned"]


def test_epochs_are_told_with_their_figures() -> None:
    texts = [x.text for x in epoch_lines([line(1), line(2, None, 0.0)])]
    assert texts == [
        "Epoch 1 finished: 5,120 samples by 1 peer in 18 s, loss 5.312",
        "Epoch 2 finished: 5,120 samples by 2 peers",
    ]
    many = epoch_lines([line(i) for i in range(3, 12)])
    assert [x.text for x in many] == ["Epochs 3 to 11 finished"]
