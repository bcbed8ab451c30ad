"""Addresses of a swarm are really dialled, within a bound."""

import socket
import time

import pytest

from web.monitoring.dial import MAX_DIALLED, SECONDS, addresses_dial, target_of


@pytest.fixture
def listener() -> socket.socket:
    server = socket.create_server(("127.0.0.1", 0))
    yield server  # type: ignore[misc]
    server.close()


def test_a_port_that_listens_is_told_from_one_that_does_not(listener: socket.socket) -> None:
    port = listener.getsockname()[1]
    with socket.create_server(("127.0.0.1", 0)) as other:
        closed = other.getsockname()[1]
    found = addresses_dial(
        [f"/ip4/127.0.0.1/tcp/{port}/p2p/Qm1", f"/ip4/127.0.0.1/tcp/{closed}/p2p/Qm2",
         "/ip4/127.0.0.1/udp/1/quic", "nonsense"]
    )  # fmt: skip
    assert [entry.is_reached for entry in found] == [True, False, False, False]
    assert "refused" in found[1].text
    assert "no address" in found[3].text


def test_what_never_answers_costs_a_bounded_time() -> None:
    # 192.0.2.0/24 is kept free for examples: it is either refused at once or never answered.
    started = time.monotonic()
    found = addresses_dial([f"/ip4/192.0.2.{n}/tcp/9/p2p/Qm" for n in range(1, 30)])
    assert time.monotonic() - started < SECONDS + 2
    assert len(found) == MAX_DIALLED
    assert not any(entry.is_reached for entry in found)


def test_a_page_that_is_loaded_again_does_not_dial_again(listener: socket.socket) -> None:
    address = f"/ip4/127.0.0.1/tcp/{listener.getsockname()[1]}/p2p/Qm"
    first = addresses_dial([address])
    listener.close()
    assert addresses_dial([address]) == first


def test_no_address_is_no_work() -> None:
    assert addresses_dial([]) == ()


@pytest.mark.parametrize(
    ("address", "target"),
    [
        ("/ip4/10.0.0.1/tcp/4001/p2p/Qm", ("10.0.0.1", 4001)),
        ("/ip6/::1/tcp/4001", ("::1", 4001)),
        ("/dns4/yard.example/tcp/4001/p2p/Qm", ("yard.example", 4001)),
        ("/ip4/10.0.0.999/tcp/4001", None),
        ("/ip4/10.0.0.1/tcp/0", None),
        ("/ip4/10.0.0.1/tcp/70000", None),
        ("/ip4/10.0.0.1/tcp/١٢", None),
        ("/unix/tmp/tcp/1", None),
        ("/dns/yärd/tcp/1", None),
        ("", None),
    ],
)
def test_multiaddresses_are_read(address: str, target: tuple[str, int] | None) -> None:
    assert target_of(address) == target
