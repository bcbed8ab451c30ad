"""The counting rule: what is proven, what waits, and what does not count."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.protocol.states import CreditState
from web.contributions.grounds import PROVISIONAL_TEXTS, TEXTS, Ground, SuspicionKind
from web.contributions.judging import judge
from web.contributions.proofs import Case, Proof, Verdict

CONFIRMED, WAITS, REJECTED = CreditState.CONFIRMED, CreditState.PROVISIONAL, CreditState.REJECTED
ABOVE, WITHOUT = SuspicionKind.CLAIM_ABOVE_WEIGHT, SuspicionKind.SAMPLES_WITHOUT_AVERAGING
NAMES = "abcdefgh"


def proof(name: str, samples: int | None = 100, **fields: Any) -> Proof:
    """Return what is known of a peer that took part, of an account of its own."""
    number = NAMES.index(name)
    given: dict[str, Any] = {
        "device_id": number, "user_id": number, "peer_id": name, "recorded": samples,
        "reported": samples, "stated": samples, "is_covered": True, "most": 10_000,
    }  # fmt: skip
    return Proof(**(given | fields))


def group(*names: str, samples: int = 100, **fields: Any) -> list[Proof]:
    """Return peers that averaged together and say so."""
    return [
        proof(
            name,
            samples,
            group_size=len(names),
            weights={n: samples for n in names if n != name},
            **fields,
        )
        for name in names
    ]


def verdict(proofs: list[Proof], name: str = "a", **fields: Any) -> Verdict:
    found = dict(zip([p.peer_id for p in proofs], judge(Case(proofs, **fields)), strict=True))
    return found[name]


def facts(item: Verdict) -> tuple[CreditState, Ground, int]:
    return item.state, item.ground, item.samples


def silent(name: str, **fields: Any) -> Proof:
    """Return a peer that the coordinator counted and that signed nothing of the epoch."""
    return proof(name, **({"stated": None, "is_covered": False, "most": None} | fields))


def test_peers_that_saw_each_others_samples_are_proven_at_once() -> None:
    for item in judge(Case(group("a", "b", "c"), accumulated=300)):
        assert facts(item) == (CONFIRMED, Ground.PROVEN, 100)
        assert (item.num_witnesses, item.suspicion, item.text) == (2, None, "")
        assert item.is_final


def test_two_machines_of_one_account_prove_each_other() -> None:
    assert facts(verdict(group("a", "b", user_id=7))) == (CONFIRMED, Ground.PROVEN, 100)


def test_a_sole_trainer_is_judged_by_its_record_and_its_heartbeat() -> None:
    alone = proof("a", group_size=1)
    assert facts(verdict([alone], accumulated=100)) == (CONFIRMED, Ground.PROVEN, 100)
    unwatched = proof("a", recorded=None, reported=None)
    assert facts(verdict([unwatched])) == (CONFIRMED, Ground.PROVEN, 100)
    unheard = proof("a", recorded=None, reported=None, is_heard=False)
    assert facts(verdict([unheard])) == (WAITS, Ground.UNHEARD, 100)
    assert facts(verdict([unheard], is_overdue=True)) == (REJECTED, Ground.UNHEARD, 100)
    assert facts(verdict([unheard], is_late=True)) == (CONFIRMED, Ground.PROVEN, 100)


def test_the_smaller_of_record_and_statement_counts() -> None:
    assert verdict([proof("a", recorded=90)]).samples == 90
    assert verdict([proof("a", recorded=110)]).samples == 100
    late = verdict([proof("a", recorded=None, reported=100)])
    assert facts(late) == (CONFIRMED, Ground.PROVEN, 100)


def test_samples_that_a_peer_threw_away_do_not_count() -> None:
    resynchronised = proof("a", 0, recorded=None, reported=None, discarded=80, stated=None)
    assert facts(verdict([resynchronised])) == (REJECTED, Ground.DISCARDED, 80)
    failed_round = proof("a", 80, stated=0)
    proofs = [failed_round, *group("b", "c")]
    assert facts(verdict(proofs)) == (REJECTED, Ground.DISCARDED, 80)
    assert verdict(proofs).suspicion is None


def test_its_own_word_that_nothing_entered_outweighs_those_who_read_its_parts() -> None:
    proofs = group("a", "b")
    proofs[0] = proof("a", stated=0)
    assert facts(verdict(proofs)) == (REJECTED, Ground.DISCARDED, 100)


@pytest.mark.parametrize("is_covered", [True, False])
def test_a_trainer_that_died_or_started_anew_after_its_average_keeps_the_credit(
    is_covered: bool,
) -> None:
    proofs = [silent("a", is_covered=is_covered), *group("a", "b", "c")[1:]]
    waiting = verdict(proofs)
    assert waiting.ground is (Ground.PROVEN if is_covered else Ground.UNSIGNED)
    assert facts(verdict(proofs, is_overdue=True)) == (CONFIRMED, Ground.PROVEN, 100)
    assert verdict(proofs, is_overdue=True).num_witnesses == 2


def test_without_witnesses_the_record_of_a_silent_trainer_stands_if_it_was_heard() -> None:
    lone = silent("a")
    assert facts(verdict([lone])) == (WAITS, Ground.UNSIGNED, 100)
    assert not verdict([lone]).is_final
    assert facts(verdict([lone], is_overdue=True)) == (CONFIRMED, Ground.RECORDED, 100)
    unheard = silent("a", is_heard=False)
    assert facts(verdict([unheard], is_overdue=True)) == (REJECTED, Ground.UNSIGNED, 100)
    late = verdict([unheard], is_overdue=True, is_late=True)
    assert facts(late) == (CONFIRMED, Ground.RECORDED, 100)


def test_a_coordinator_cannot_credit_a_silent_device_that_nobody_averaged_with() -> None:
    proofs = [silent("a"), *group("b", "c")]
    found = verdict(proofs, is_overdue=True, is_late=True)
    assert facts(found) == (REJECTED, Ground.UNSIGNED, 100)
    assert found.suspicion is None


def test_what_others_have_not_told_yet_is_waited_for() -> None:
    proofs = [*group("a", "b")[:1], proof("b")]
    assert facts(verdict(proofs)) == (WAITS, Ground.AWAITING_WITNESSES, 100)
    assert facts(verdict(proofs, is_overdue=True)) == (CONFIRMED, Ground.UNWITNESSED, 100)
    barred = [*group("a", "b")[:1], proof("b", barred="this account is suspended")]
    assert verdict(barred).state is CONFIRMED


def test_three_witnesses_are_enough() -> None:
    proofs = [*group("a", "b", "c", "d", "e")[:4], silent("e")]
    assert facts(verdict(proofs)) == (CONFIRMED, Ground.PROVEN, 100)
    assert verdict(proofs[1:], "d").state is WAITS


def test_trainers_that_were_all_alone_are_each_taken_at_their_word() -> None:
    proofs = [proof("a", group_size=1), proof("b", group_size=1)]
    assert facts(verdict(proofs)) == (CONFIRMED, Ground.UNWITNESSED, 100)


def test_who_is_in_nobodys_group_waits_and_is_rejected_after_the_deadline() -> None:
    proofs = [proof("a", group_size=1), *group("b", "c")]
    assert facts(verdict(proofs)) == (WAITS, Ground.NOT_IN_GROUP, 100)
    assert verdict(proofs).suspicion is None
    found = verdict(proofs, is_overdue=True)
    assert facts(found) == (REJECTED, Ground.NOT_IN_GROUP, 100)
    assert found.suspicion is None, "once is an accident"


def test_two_separate_groups_are_two_averages() -> None:
    proofs = [*group("a", "b"), *group("c", "d")]
    assert {facts(v) for v in judge(Case(proofs))} == {(CONFIRMED, Ground.PROVEN, 100)}


def test_a_member_that_sent_no_part_to_the_witness_is_still_a_member() -> None:
    proofs = [proof("a", group_size=2, weights={"b": 100}), proof("b", group_size=2)]
    proofs[1] = proof("b", group_size=2, weights={"a": None})
    found = verdict(proofs)
    assert (*facts(found), found.num_witnesses) == (CONFIRMED, Ground.PROVEN, 100, 1)


def test_a_claim_above_the_weight_is_cut_and_suspicious() -> None:
    proofs = group("a", "b", "c")
    proofs[0] = proof("a", 1000, group_size=3, weights={"b": 100, "c": 100})
    found = verdict(proofs)
    assert facts(found) == (CONFIRMED, Ground.ABOVE_WEIGHT, 100)
    assert (found.claimed, found.suspicion) == (1000, ABOVE)
    assert found.text == "1,000 were stated; those who averaged them saw 100"


def test_a_claim_without_weight_is_rejected_when_two_accounts_say_so() -> None:
    proofs = group("a", "b", "c")
    for index in (1, 2):
        proofs[index] = proof("bc"[index - 1], group_size=3, weights={"a": 0})
    assert facts(verdict(proofs)) == (REJECTED, Ground.WITHOUT_WEIGHT, 100)
    assert verdict(proofs).suspicion is ABOVE


@pytest.mark.parametrize("seen", [0, 1, 99])
def test_one_account_alone_takes_nobody_anything(seen: int) -> None:
    proofs = [group("a", "b")[0], proof("b", group_size=2, weights={"a": seen})]
    found = verdict(proofs, is_overdue=True)
    assert facts(found) == (WAITS, Ground.ONE_WORD, 100)
    assert (found.suspicion, found.is_final, found.attested) == (ABOVE, True, seen)
    assert (
        found.text == f"the one account that averaged with it saw {seen} samples; organisers decide"
    )
    trusted = [group("a", "b", is_trusted=True)[0], proofs[1]]
    assert facts(verdict(trusted)) == (CONFIRMED, Ground.UNWITNESSED, 100)


def test_a_minority_of_liars_lowers_nobody_however_many_machines_they_have() -> None:
    proofs = group("a", "b", "c", "d", "e", "f")
    for index in (3, 4, 5):
        proofs[index] = proof(NAMES[index], user_id=9, group_size=6, weights={"a": 0})
    assert facts(verdict(proofs)) == (CONFIRMED, Ground.PROVEN, 100)


def test_own_machines_are_not_heard_when_others_were_there() -> None:
    proofs = group("a", "b", "c", samples=100)
    proofs[0] = proof("a", 900, group_size=3, weights={})
    proofs[1] = proof("b", user_id=0, group_size=3, weights={"a": 900})
    found = verdict(proofs)
    assert (found.ground, found.attested) == (Ground.ONE_WORD, 100)


def test_more_than_it_says_it_computed_is_implausible() -> None:
    found = [proof("a", most=99)]
    assert facts(verdict(found)) == (WAITS, Ground.IMPLAUSIBLE, 100)
    assert facts(verdict(found, is_overdue=True)) == (REJECTED, Ground.IMPLAUSIBLE, 100)
    assert verdict([proof("a", most=None)]).state is CONFIRMED


@pytest.mark.parametrize("person", [proof("a"), silent("a")])
def test_who_is_barred_gets_nothing(person: Proof) -> None:
    proofs = [Proof(**(vars(person) | {"barred": "this account is suspended"}))]
    found = verdict(proofs)
    assert facts(found) == (REJECTED, Ground.BARRED, 100)
    assert found.text == "this account is suspended"


def test_in_large_groups_who_is_named_by_nobody_is_absent_only_when_enough_were_told() -> None:
    def witnesses(number: int) -> list[Proof]:
        return [
            Proof(device_id=i, user_id=i, peer_id=f"w{i}", stated=10, is_covered=True,
                  group_size=25, weights={f"x{j}": 10 for j in range(12)})
            for i in range(20, 20 + number)
        ]  # fmt: skip

    few, many = ([proof("a"), *witnesses(n)] for n in (11, 12))
    assert verdict(few, is_overdue=True).ground is Ground.UNWITNESSED
    assert verdict(many, is_overdue=True).ground is Ground.NOT_IN_GROUP


def test_sums_above_what_was_accumulated_hold_what_nobody_recorded_or_saw() -> None:
    invented = proof("a", 500, recorded=None, group_size=1)
    honest = proof("b", group_size=1)
    found = dict(zip("ab", judge(Case([invented, honest], accumulated=100)), strict=True))
    assert facts(found["a"]) == (WAITS, Ground.SUM_TOO_LARGE, 500)
    assert (found["a"].suspicion, found["a"].is_final) == (WITHOUT, True)
    assert facts(found["b"]) == (CONFIRMED, Ground.UNWITNESSED, 100)
    trusted = proof("a", 500, recorded=None, group_size=1, is_trusted=True)
    assert verdict([trusted, honest], accumulated=100).state is CONFIRMED


def test_what_others_saw_needs_no_record_to_fit_the_sum() -> None:
    proofs = group("a", "b")
    proofs[0] = proof("a", recorded=None, group_size=2, weights={"b": 100})
    assert {v.state for v in judge(Case(proofs, accumulated=100))} == {CONFIRMED}


def test_records_that_contradict_the_sum_are_held_and_what_waits_goes_on_waiting() -> None:
    proofs = [proof("a"), silent("b")]
    found = judge(Case(proofs, accumulated=50))
    assert [v.ground for v in found] == [Ground.AWAITING_WITNESSES, Ground.UNSIGNED]
    found = judge(Case(proofs[:1], accumulated=50))
    assert [v.ground for v in found] == [Ground.SUM_TOO_LARGE]


def test_the_work_of_a_suspicious_device_waits_and_nothing_else_of_it_changes() -> None:
    found = verdict(group("a", "b", held="waits for an organiser: x"))
    assert facts(found) == (WAITS, Ground.QUARANTINED, 100)
    assert found.text == "waits for an organiser: x"
    assert found.is_final
    rejected = verdict([proof("a", 80, stated=0, held="x")])
    assert rejected.ground is Ground.DISCARDED


def test_every_ground_has_its_sentence() -> None:
    spoken = {Ground.BARRED, Ground.QUARANTINED, Ground.DECIDED}
    assert TEXTS.keys() | PROVISIONAL_TEXTS.keys() == set(Ground) - spoken


counts = st.one_of(st.none(), st.integers(0, 300))
anything: st.SearchStrategy[dict[str, Any]] = st.builds(
    dict,
    recorded=counts, reported=counts, discarded=st.integers(0, 300), stated=counts,
    is_covered=st.booleans(), group_size=st.one_of(st.none(), st.integers(1, 6)),
    weights=st.dictionaries(st.sampled_from("abcdez"), counts, max_size=5),
    most=counts, is_heard=st.booleans(), barred=st.sampled_from(["", "", "banned"]),
    held=st.sampled_from(["", "", "held"]), user_id=st.integers(0, 2), is_trusted=st.booleans(),
)  # fmt: skip
cases = st.builds(
    lambda rows, accumulated, overdue, late: Case(
        [proof(name, **row) for name, row in zip("abcde", rows, strict=False)],
        accumulated, is_overdue=overdue, is_late=late,
    ),
    st.lists(anything, max_size=5), counts, st.booleans(), st.booleans(),
)  # fmt: skip


@given(cases)
def test_no_verdict_gives_more_than_was_claimed_and_each_says_why(case: Case) -> None:
    found = judge(case)
    assert [v.device_id for v in found] == [p.device_id for p in case.proofs]
    for item, known in zip(found, case.proofs, strict=True):
        assert item.samples <= (known.counted if known.stated in (None, 0) else known.stated)
        assert item.samples >= 0
        assert bool(item.text) == (item.ground is not Ground.PROVEN)
        if known.barred:
            assert item.state is REJECTED
        if known.held:
            assert item.state is not CONFIRMED
        if case.is_overdue:
            assert item.is_final


@given(cases, st.randoms())
def test_the_order_of_the_evidence_does_not_matter(case: Case, random: Any) -> None:
    shuffled = list(case.proofs)
    random.shuffle(shuffled)
    other = Case(shuffled, case.accumulated, is_overdue=case.is_overdue, is_late=case.is_late)
    assert sorted(judge(case), key=lambda v: v.device_id) == sorted(
        judge(other), key=lambda v: v.device_id
    )


@given(
    samples=st.lists(st.integers(1, 500), min_size=1, max_size=6),
    missing=st.sets(st.integers(0, 5)),
    watched=st.booleans(),
    data=st.data(),
)
def test_honest_trainers_lose_nothing_whatever_reports_are_missed(
    samples: list[int], missing: set[int], watched: bool, data: st.DataObject
) -> None:
    size = len(samples)
    weights = dict(zip(NAMES, samples, strict=False))
    proofs = []
    for index, (name, number) in enumerate(weights.items()):
        is_told = index not in missing
        is_named = is_told or data.draw(st.booleans())
        proofs.append(
            proof(
                name, number, recorded=number if watched else None,
                stated=number if is_named else None, is_covered=is_named,
                most=number if is_named else None,
                group_size=size if is_told else None,
                weights={n: w for n, w in weights.items() if n != name} if is_told else {},
            )
        )  # fmt: skip
    total = sum(samples) if watched else None
    for item, number in zip(judge(Case(proofs, total, is_overdue=True)), samples, strict=True):
        assert (item.state, item.samples, item.suspicion) == (CONFIRMED, number, None)
