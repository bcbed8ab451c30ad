"""Which samples of an epoch are proven, which have to wait, and which do not count. Pure.

Evidence on a device in one epoch: the coordinator's progress record, the device's own signed
statement, and what other devices signed about the averaging round: who was in it, and the weight
that its parts carried. A statement may be lowered by the others and is never raised.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from training.protocol.states import CreditState
from web.contributions.grounds import PROVISIONAL_TEXTS, TEXTS, Ground, SuspicionKind

QUORUM = 3
"""So many witnesses are enough; with fewer, those that have not reported yet are waited for."""
COVER_WHOLE = 1.0
"""One witness that names every member of its round, and none that ought to have more."""
COVER_PARTS = 6.0
"""Witnesses of a large group name some members each: together they must have named this many
times everybody before a peer that nobody names is taken for absent (wrong in 1 of 400 cases)."""
SUM_TOLERANCE = 1.01


@dataclass(frozen=True)
class Proof:
    """Everything that is known of one device in one epoch."""

    device_id: int
    user_id: int
    peer_id: str
    recorded: int | None = None
    """What the coordinator reports; None: it does not name the device."""
    discarded: int = 0
    """Recorded samples that the coordinator reports as thrown away."""
    stated: int | None = None
    """What the device signed; None: it has not named the epoch."""
    is_covered: bool = False
    """Its signed reports cover the epoch, whether or not they name it."""
    group_size: int | None = None
    """Of its averaging round, by its own signed account; None: not told."""
    weights: Mapping[str, int | None] = field(default_factory=dict)
    """What it saw others' parts carry, by peer id."""
    most: int | None = None
    """Samples that it says it computed at all: it cannot have averaged more."""
    is_heard: bool = True
    """A heartbeat came, with the device's token, near the epoch's end or later."""
    barred: str = ""
    """Why the device may not be credited, such as ``this account is suspended``."""
    held: str = ""
    """Why its work waits for an organiser's decision."""


@dataclass(frozen=True)
class Case:
    """An epoch to be judged."""

    proofs: Sequence[Proof]
    accumulated: int | None = None
    """Sum of all progress records, of claimed peers and others."""
    is_overdue: bool = False
    """Evidence that is not here yet is not waited for any longer."""


@dataclass(frozen=True)
class Verdict:
    """What becomes of one device's samples of an epoch."""

    device_id: int
    user_id: int
    samples: int
    state: CreditState
    ground: Ground = Ground.PROVEN
    text: str = ""
    claimed: int = 0
    """What the device stated."""
    num_witnesses: int = 0
    suspicion: SuspicionKind | None = None

    @property
    def is_final(self) -> bool:
        """Whether more evidence would change nothing; an organiser still can."""
        return self.state is not CreditState.PROVISIONAL or self.ground in _FOR_ORGANISERS


_FOR_ORGANISERS = frozenset({Ground.QUARANTINED, Ground.SUM_TOO_LARGE})


@dataclass
class _Seen:
    """What others signed about one device."""

    weights: list[int] = field(default_factory=list)
    own_weights: list[int] = field(default_factory=list)
    """Of other devices of the same account: heard when nobody else saw it."""
    is_member: bool = False
    cover: float = 0.0
    has_whole: bool = False
    num_waited: int = 0
    """Other devices in the epoch whose account of their round has not come."""
    has_others: bool = False

    @property
    def best(self) -> list[int]:
        return self.weights or self.own_weights


def judge(case: Case) -> list[Verdict]:
    """Return a verdict on each device that claims anything, in the order of the proofs."""
    seen = _seen_by_others(case.proofs)
    verdicts = [_judge_one(proof, seen[proof.peer_id], case) for proof in case.proofs]
    return [_hold(v, p) for v, p in zip(_sums_check(verdicts, case), case.proofs, strict=True)]


def _seen_by_others(proofs: Sequence[Proof]) -> dict[str, _Seen]:
    by_peer = {proof.peer_id: proof for proof in proofs}
    seen = {peer_id: _Seen() for peer_id in by_peer}
    takers = [proof for proof in proofs if proof.stated or proof.recorded]
    silent = {proof.peer_id for proof in takers if _is_awaited(proof)}
    witnesses = [proof for proof in proofs if (proof.group_size or 1) > 1]
    for witness in witnesses:
        for peer_id, weight in witness.weights.items():
            if peer_id in seen and peer_id != witness.peer_id:
                _note(seen[peer_id], weight, is_own=by_peer[peer_id].user_id == witness.user_id)
    covers = {witness.peer_id: _cover(witness) for witness in witnesses}
    whole, num_whole = sum(covers.values()), sum(cover >= 1 for cover in covers.values())
    for peer_id, item in seen.items():
        own = covers.get(peer_id, 0.0)
        item.cover = whole - own
        item.has_whole = num_whole - (own >= 1) > 0
        item.num_waited = len(silent - {peer_id})
        item.has_others = any(taker.peer_id != peer_id for taker in takers)
    return seen


def _is_awaited(proof: Proof) -> bool:
    """Whether a device took part, as far as is known, and its account of the round is not here."""
    is_out = proof.barred or (proof.is_covered and not proof.stated)
    return proof.group_size is None and not is_out


def _note(seen: _Seen, weight: int | None, *, is_own: bool) -> None:
    seen.is_member = True
    if weight is not None:
        (seen.own_weights if is_own else seen.weights).append(weight)


def _cover(witness: Proof) -> float:
    """Return which part of the other members a witness names."""
    return min(1.0, len(witness.weights) / ((witness.group_size or 2) - 1))


def _judge_one(proof: Proof, seen: _Seen, case: Case) -> Verdict:
    recorded = proof.recorded or proof.discarded
    if proof.barred:
        return _verdict(proof, proof.stated or recorded, Ground.BARRED, text=proof.barred)
    if proof.stated is None and not proof.is_covered and not proof.discarded:
        return _pending(proof, recorded, Ground.UNSIGNED, case)
    if not proof.stated:
        return _verdict(proof, recorded, Ground.DISCARDED)
    samples = min(proof.stated, proof.recorded or proof.stated)
    if proof.most is not None and samples > proof.most:
        return _pending(proof, samples, Ground.IMPLAUSIBLE, case)
    return _judge_signed(proof, samples, seen, case)


def _judge_signed(proof: Proof, samples: int, seen: _Seen, case: Case) -> Verdict:
    weights = sorted(seen.best)
    attested = weights[(len(weights) - 1) // 2] if weights else samples
    if seen.num_waited and len(weights) < QUORUM and not case.is_overdue:
        return _pending(proof, min(samples, attested), Ground.AWAITING_WITNESSES, case)
    if weights and attested == 0:
        return _verdict(proof, samples, Ground.WITHOUT_WEIGHT)
    if weights and attested < samples:
        return _verdict(proof, attested, Ground.ABOVE_WEIGHT, witnesses=len(weights))
    if weights or seen.is_member:
        return _verdict(proof, samples, Ground.PROVEN, witnesses=max(1, len(weights)))
    if seen.cover >= (COVER_WHOLE if seen.has_whole else COVER_PARTS):
        return _pending(proof, samples, Ground.NOT_IN_GROUP, case)
    if not seen.has_others:
        # Nobody else was there: its record and its heartbeat have to do.
        if proof.recorded or proof.is_heard:
            return _verdict(proof, samples, Ground.PROVEN)
        return _pending(proof, samples, Ground.UNHEARD, case)
    if not case.is_overdue:
        return _pending(proof, samples, Ground.AWAITING_WITNESSES, case)
    return _verdict(proof, samples, Ground.UNWITNESSED)


_COUNTED = frozenset({Ground.PROVEN, Ground.ABOVE_WEIGHT, Ground.UNWITNESSED})
_SUSPICIONS = {
    Ground.ABOVE_WEIGHT: SuspicionKind.CLAIM_ABOVE_WEIGHT,
    Ground.WITHOUT_WEIGHT: SuspicionKind.CLAIM_ABOVE_WEIGHT,
    Ground.NOT_IN_GROUP: SuspicionKind.SAMPLES_WITHOUT_AVERAGING,
}


def _verdict(
    proof: Proof, samples: int, ground: Ground, *, text: str = "", witnesses: int = 0
) -> Verdict:
    claimed = proof.stated or 0
    is_beyond = ground is not Ground.ABOVE_WEIGHT or claimed > samples
    return Verdict(
        device_id=proof.device_id,
        user_id=proof.user_id,
        samples=samples,
        state=CreditState.CONFIRMED if ground in _COUNTED else CreditState.REJECTED,
        ground=ground,
        text=text or TEXTS[ground].format(claimed=f"{claimed:,}", samples=f"{samples:,}"),
        claimed=claimed,
        num_witnesses=witnesses,
        suspicion=_SUSPICIONS.get(ground) if is_beyond else None,
    )


def _pending(proof: Proof, samples: int, ground: Ground, case: Case) -> Verdict:
    """Return a verdict that waits; once it is overdue, it is against the claim."""
    if case.is_overdue:
        return _verdict(proof, samples, ground)
    text = PROVISIONAL_TEXTS[ground]
    return Verdict(
        proof.device_id, proof.user_id, samples, CreditState.PROVISIONAL, ground, text,
        claimed=proof.stated or 0,
    )  # fmt: skip


def _sums_check(verdicts: Sequence[Verdict], case: Case) -> list[Verdict]:
    """Hold what no other device vouches for when an epoch has more than was accumulated."""
    total = sum(v.samples for v in verdicts if v.state is not CreditState.REJECTED)
    if case.accumulated is None or total <= case.accumulated * SUM_TOLERANCE:
        return list(verdicts)
    ground = Ground.SUM_TOO_LARGE
    return [
        replace(
            v,
            state=CreditState.PROVISIONAL,
            ground=ground,
            text=PROVISIONAL_TEXTS[ground],
            suspicion=SuspicionKind.SAMPLES_WITHOUT_AVERAGING,
        )
        if v.state is CreditState.CONFIRMED and not v.num_witnesses
        else v
        for v in verdicts
    ]


def _hold(verdict: Verdict, proof: Proof) -> Verdict:
    if not proof.held or verdict.state is not CreditState.CONFIRMED:
        return verdict
    return replace(
        verdict, state=CreditState.PROVISIONAL, ground=Ground.QUARANTINED, text=proof.held
    )
