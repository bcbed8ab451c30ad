"""One key: the peer id on the wire, the owner of records, the signer."""

from pathlib import Path

from hivemind.p2p import PeerID

from training.client.swarm_key import swarm_key_load_or_create
from training.swarm.identity import owner_public_der, owner_subkey, rsa_key


def test_hivemind_reads_our_identity_file_as_the_same_peer(tmp_path: Path) -> None:
    key = swarm_key_load_or_create(tmp_path / "swarm.key")
    assert PeerID.from_identity(key.path.read_bytes()).to_base58() == key.peer_id


def test_the_record_key_is_the_swarm_key(tmp_path: Path) -> None:
    key = swarm_key_load_or_create(tmp_path / "swarm.key")
    ours = rsa_key(key)
    assert ours.to_bytes() == key.private_der
    assert ours.get_public_key().verify(b"text", ours.sign(b"text"))


def test_the_owner_of_a_subkey_is_found_again(tmp_path: Path) -> None:
    key = swarm_key_load_or_create(tmp_path / "swarm.key")
    assert owner_public_der(owner_subkey(key)) == key.public_der


def test_subkeys_without_one_owner_have_none(tmp_path: Path) -> None:
    subkey = owner_subkey(swarm_key_load_or_create(tmp_path / "swarm.key"))
    for other in (b"", b"[owner:ssh-rsa AAAA]", b"[owner:]", b"alice", subkey + subkey):
        assert owner_public_der(other) is None
