"""Addresses that are kept for the next start."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from training.coordinator.known_peers import (
    MAX_KNOWN,
    KnownPeers,
    address_answers,
    addresses_alive,
)


def address(peer: str, port: int = 1) -> str:
    return f"/ip4/127.0.0.1/tcp/{port}/p2p/{peer}"


@pytest.fixture
def open_port() -> Iterator[int]:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        yield server.getsockname()[1]


def known(folder: Path, *given: str) -> KnownPeers:
    return KnownPeers(folder / "known_peers.json", own_peer_id="me", given=given)


def test_peers_are_remembered_over_restarts_newest_first(tmp_path: Path) -> None:
    known(tmp_path).remember([address("a"), address("b")])
    again = known(tmp_path, address("c"))
    assert again.addresses == (address("c"), address("a"), address("b"))


def test_one_address_per_peer_is_kept_and_never_our_own(tmp_path: Path) -> None:
    peers = known(tmp_path, address("a", 1), address("me"), "nonsense")
    peers.remember([address("a", 2)])
    assert peers.addresses == (address("a", 2),)


def test_only_so_many_are_kept(tmp_path: Path) -> None:
    peers = known(tmp_path)
    peers.remember(address(f"p{n}") for n in range(MAX_KNOWN + 5))
    assert len(peers.addresses) == MAX_KNOWN


@pytest.mark.parametrize("content", [b"{", b"[]", b'{"addresses": [1, null]}'])
def test_a_damaged_file_counts_as_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "known_peers.json").write_bytes(content)
    assert known(tmp_path, address("a")).addresses == (address("a"),)


def test_an_address_answers_when_something_listens(open_port: int) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        dead = closed.getsockname()[1]
    wanted = [address("a", dead), address("b", open_port), address("b", open_port)]
    assert addresses_alive(wanted) == [address("b", open_port)]
    assert addresses_alive([]) == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "/dns4/example.org/tcp/1/p2p/a",
        "/ip4/127.0.0.1/tcp/99999/p2p/a",
        "/ip4/localhost/tcp/1/p2p/a",
        "/ip4/127.0.0.1/udp/1/quic/p2p/a",
    ],
)
def test_an_address_of_another_kind_is_not_called(text: str) -> None:
    assert not address_answers(text)
