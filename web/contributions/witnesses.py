"""What other devices signed about a device in one epoch's averaging rounds. Pure."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from web.contributions.proofs import Proof

COVER_WHOLE = 1.0
"""One witness that names every member of its round, and none that ought to have more."""
COVER_PARTS = 6.0
"""Witnesses of a large group name some members each: together they must have named this many
times everybody before a peer that nobody names is taken for absent (wrong in 1 of 400 cases)."""


@dataclass(frozen=True)
class Seen:
    """One device by the others' word."""

    attested: int | None = None
    """Samples that its parts carried; None: nobody read any."""
    num_witnesses: int = 0
    """Accounts behind ``attested``."""
    is_member: bool = False
    """Somebody had it in his round."""
    is_absent: bool = False
    """Those who told of their rounds would have named it."""
    num_waited: int = 0
    """Other devices in the epoch whose account of their round has not come."""
    has_others: bool = False
    """Other devices took part in the epoch."""


def seen_by_others(proofs: Sequence[Proof]) -> dict[str, Seen]:
    """Return what others saw of each device, by peer id."""
    users = {proof.peer_id: proof.user_id for proof in proofs}
    weights: dict[str, dict[int, list[int]]] = {peer: defaultdict(list) for peer in users}
    members: set[str] = set()
    witnesses = [proof for proof in proofs if (proof.group_size or 1) > 1]
    for witness in witnesses:
        for peer_id in witness.weights.keys() & users.keys() - {witness.peer_id}:
            members.add(peer_id)
            weight = witness.weights[peer_id]
            if weight is not None:
                weights[peer_id][witness.user_id].append(weight)
    covers = {witness.peer_id: _cover(witness) for witness in witnesses}
    takers = {proof.peer_id for proof in proofs if proof.stated or proof.counted}
    silent = {p.peer_id for p in proofs if p.peer_id in takers and _is_awaited(p)}
    return {
        peer_id: _seen(
            weights[peer_id],
            user_id,
            is_member=peer_id in members,
            is_absent=_names_all({k: v for k, v in covers.items() if k != peer_id}),
            num_waited=len(silent - {peer_id}),
            has_others=bool(takers - {peer_id}),
        )
        for peer_id, user_id in users.items()
    }


def middle(values: Sequence[int]) -> int:
    """Return the median, of two middle ones the larger: it takes a majority to lower a number."""
    return sorted(values)[len(values) // 2]


def _seen(
    weights: Mapping[int, Sequence[int]],
    user_id: int,
    *,
    is_member: bool,
    is_absent: bool,
    num_waited: int,
    has_others: bool,
) -> Seen:
    """One account has one voice; a device's own account is heard when there is no other."""
    voices = {user: middle(values) for user, values in weights.items()}
    heard = [value for user, value in voices.items() if user != user_id] or list(voices.values())
    return Seen(
        attested=middle(heard) if heard else None,
        num_witnesses=len(heard),
        is_member=is_member,
        is_absent=is_absent and not is_member,
        num_waited=num_waited,
        has_others=has_others,
    )


def _is_awaited(proof: Proof) -> bool:
    """Whether a device took part, as far as is known, and its account of the round is not here."""
    is_out = proof.barred or (proof.is_covered and not proof.stated)
    return proof.group_size is None and not is_out


def _cover(witness: Proof) -> float:
    """Return which part of the other members a witness names."""
    return min(1.0, len(witness.weights) / ((witness.group_size or 2) - 1))


def _names_all(covers: Mapping[str, float]) -> bool:
    """Whether a member that none of these witnesses names cannot have been there."""
    enough = COVER_WHOLE if any(cover >= 1 for cover in covers.values()) else COVER_PARTS
    return sum(covers.values()) >= enough
