"""Which samples of an epoch are proven, which have to wait, and which do not count. Pure.

Evidence on a device in one epoch: the coordinator's progress record, the device's own signed
statement, and what other devices signed about the averaging round: who was in it, and the weight
that its parts carried. A statement may be lowered by the others and is never raised.

Silence is not held against a device: one that died after its average, or whose reports were lost
while the site was away, is judged by its record and by the others.
"""

from collections.abc import Sequence
from dataclasses import replace

from training.protocol.states import CreditState
from web.contributions.grounds import PROVISIONAL_TEXTS, TEXTS, Ground, SuspicionKind
from web.contributions.proofs import Case, Proof, Verdict
from web.contributions.witnesses import Seen, seen_by_others

QUORUM = 3
"""So many witnesses are enough; with fewer, those that have not reported yet are waited for."""
SUM_TOLERANCE = 1.01

_COUNTED = frozenset({Ground.PROVEN, Ground.ABOVE_WEIGHT, Ground.UNWITNESSED, Ground.RECORDED})
_SUSPICIONS = {
    Ground.ABOVE_WEIGHT: SuspicionKind.CLAIM_ABOVE_WEIGHT,
    Ground.WITHOUT_WEIGHT: SuspicionKind.CLAIM_ABOVE_WEIGHT,
    Ground.ONE_WORD: SuspicionKind.CLAIM_ABOVE_WEIGHT,
}


def judge(case: Case) -> list[Verdict]:
    """Return a verdict on each device that claims anything, in the order of the proofs."""
    seen = seen_by_others(case.proofs)
    verdicts = [_judge_one(proof, seen[proof.peer_id], case) for proof in case.proofs]
    pairs = zip(_sums_check(verdicts, case), case.proofs, strict=True)
    return [_hold(verdict, proof) for verdict, proof in pairs]


def _judge_one(proof: Proof, seen: Seen, case: Case) -> Verdict:
    if proof.barred:
        return _verdict(proof, proof.stated or proof.counted, Ground.BARRED, text=proof.barred)
    if proof.stated is None:
        return _judge_silent(proof, seen, case)
    if proof.stated == 0:
        return _verdict(proof, proof.counted, Ground.DISCARDED)
    samples = min(proof.stated, proof.recorded or proof.stated)
    if proof.most is not None and samples > proof.most:
        return _pending(proof, samples, Ground.IMPLAUSIBLE, case)
    return _judge_signed(proof, samples, seen, case)


def _judge_silent(proof: Proof, seen: Seen, case: Case) -> Verdict:
    """Judge a device whose signed reports do not name the epoch, by its record and the others."""
    recorded = proof.counted
    if not proof.is_covered and not case.is_overdue:
        return _pending(proof, recorded, Ground.UNSIGNED, case)
    if seen.attested:
        samples = min(recorded, seen.attested)
        return _verdict(proof, samples, Ground.PROVEN, witnesses=seen.num_witnesses)
    if proof.is_covered or proof.discarded:
        return _verdict(proof, recorded, Ground.DISCARDED)
    if seen.is_absent or not (proof.is_heard or case.is_late):
        return _verdict(proof, recorded, Ground.UNSIGNED)
    return _verdict(proof, recorded, Ground.RECORDED)


def _judge_signed(proof: Proof, samples: int, seen: Seen, case: Case) -> Verdict:
    attested = samples if seen.attested is None else seen.attested
    if seen.num_waited and seen.num_witnesses < QUORUM and not case.is_overdue:
        return _pending(proof, min(samples, attested), Ground.AWAITING_WITNESSES, case)
    if attested < samples:
        return _cut(proof, samples, attested, seen)
    if seen.is_member:
        return _verdict(proof, samples, Ground.PROVEN, witnesses=max(1, seen.num_witnesses))
    if seen.is_absent:
        return _pending(proof, samples, Ground.NOT_IN_GROUP, case)
    if seen.has_others:
        return _verdict(proof, samples, Ground.UNWITNESSED)
    # Nobody else was there: its record and its heartbeat have to do.
    if proof.recorded or proof.is_heard or case.is_late:
        return _verdict(proof, samples, Ground.PROVEN)
    return _pending(proof, samples, Ground.UNHEARD, case)


def _cut(proof: Proof, samples: int, attested: int, seen: Seen) -> Verdict:
    """Count what the others saw; of one account's word against another's an organiser decides."""
    if seen.num_witnesses > 1:
        ground = Ground.ABOVE_WEIGHT if attested else Ground.WITHOUT_WEIGHT
        return _verdict(proof, attested or samples, ground, witnesses=seen.num_witnesses)
    if proof.is_trusted:
        return _verdict(proof, samples, Ground.UNWITNESSED)
    text = PROVISIONAL_TEXTS[Ground.ONE_WORD].format(seen=f"{attested:,}")
    return replace(
        _verdict(proof, samples, Ground.ONE_WORD, text=text),
        state=CreditState.PROVISIONAL,
        attested=attested,
    )


def _verdict(
    proof: Proof, samples: int, ground: Ground, *, text: str = "", witnesses: int = 0
) -> Verdict:
    claimed = proof.stated or 0
    sentence = text or TEXTS[ground].format(claimed=f"{claimed:,}", samples=f"{samples:,}")
    return Verdict(
        device_id=proof.device_id,
        user_id=proof.user_id,
        samples=samples,
        state=CreditState.CONFIRMED if ground in _COUNTED else CreditState.REJECTED,
        ground=ground,
        text=sentence,
        claimed=claimed,
        num_witnesses=witnesses,
        suspicion=_SUSPICIONS.get(ground),
    )


def _pending(proof: Proof, samples: int, ground: Ground, case: Case) -> Verdict:
    """Return a verdict that waits; once it is overdue, it is against the claim."""
    verdict = _verdict(proof, samples, ground)
    if case.is_overdue:
        return verdict
    text = PROVISIONAL_TEXTS[ground]
    return replace(verdict, state=CreditState.PROVISIONAL, text=text, suspicion=None)


def _sums_check(verdicts: Sequence[Verdict], case: Case) -> list[Verdict]:
    """Hold what nobody else vouches for when an epoch has more than was accumulated."""
    if case.accumulated is None:
        return list(verdicts)
    counted = [v for v in verdicts if v.state is not CreditState.REJECTED]
    unrecorded = {p.device_id for p in case.proofs if not p.recorded}
    # The sum is one of records: what others vouch for without one is not in it.
    summed = [v for v in counted if not (v.num_witnesses and v.device_id in unrecorded)]
    if sum(v.samples for v in summed) <= case.accumulated * SUM_TOLERANCE:
        return list(verdicts)
    alone = {v.device_id for v in summed if not v.num_witnesses}
    held = (alone & unrecorded or alone) - {p.device_id for p in case.proofs if p.is_trusted}
    return [_exceeds(v) if v.device_id in held else v for v in verdicts]


def _exceeds(verdict: Verdict) -> Verdict:
    if verdict.state is not CreditState.CONFIRMED:
        return verdict
    return replace(
        verdict,
        state=CreditState.PROVISIONAL,
        ground=Ground.SUM_TOO_LARGE,
        text=PROVISIONAL_TEXTS[Ground.SUM_TOO_LARGE],
        suspicion=SuspicionKind.SAMPLES_WITHOUT_AVERAGING,
    )


def _hold(verdict: Verdict, proof: Proof) -> Verdict:
    if not proof.held or verdict.state is not CreditState.CONFIRMED:
        return verdict
    return replace(
        verdict, state=CreditState.PROVISIONAL, ground=Ground.QUARANTINED, text=proof.held
    )
