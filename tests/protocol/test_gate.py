"""The rule of the gate: every way to be wrong has its own verdict, and being right is narrow."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from joserfc.jwk import OKPKey
from pydantic import BaseModel

from training.protocol.admission import AdmissionQuestion, Verdict
from training.protocol.claims import PeerPass, Revocations
from training.protocol.config import RunConfig, TaskConfig
from training.protocol.envelope import EnvelopeError, sign
from training.protocol.errors import ErrorCode
from training.protocol.gate import GateRules, GateView, pass_open, revocations_open, verdict_of
from training.protocol.keys import key_generate
from training.protocol.names import TYP_CONFIG, TYP_PASS, TYP_REVOCATIONS
from training.protocol.states import Role

NOW = datetime(2026, 7, 1, 12, tzinfo=UTC)
SITE, OTHER_SITE = key_generate(), key_generate()
RULES = GateRules("demo", 2, grace=timedelta(hours=1), stale=timedelta(seconds=90))
VIEW = GateView(keys=(SITE,), contact_at=NOW)
LIFETIME = timedelta(minutes=30)


def signed(body: BaseModel, typ: str, *, age: timedelta, key: OKPKey = SITE) -> str:
    return sign(body, typ=typ, key=key, issuer="http://x", lifetime=LIFETIME, now=NOW - age)


def pass_make(
    *, age: timedelta = timedelta(), key: OKPKey = SITE, typ: str = TYP_PASS, **claims: object
) -> str:
    values: dict[str, object] = {
        "sub": "bob",
        "device": "d",
        "run": "demo",
        "lineage": 2,
        "peer_id": "QmBob",
        "key_thumbprint": "0" * 64,
        "role": Role.TRAINER,
    }
    return signed(PeerPass.model_validate(values | claims), typ, age=age, key=key)


def judge(token: str, peer_id: str = "QmBob", view: GateView = VIEW, **options: bool) -> Verdict:
    is_known = options.get("is_known", False)
    return verdict_of(
        peer_id,
        token,
        rules=RULES,
        view=view,
        now=NOW,
        is_known=is_known,
        open_pass=lambda shown: pass_open(shown, view.keys),
    )


GOOD = pass_make()
HOUR = timedelta(hours=1)


def test_a_member_is_admitted() -> None:
    assert judge(GOOD) is Verdict.ADMITTED


@pytest.mark.parametrize(
    ("token", "verdict"),
    [
        ("", Verdict.PASS_NONE),
        (pass_make(age=LIFETIME), Verdict.PASS_EXPIRED),
        (pass_make(run="other"), Verdict.PASS_WRONG_RUN),
        (pass_make(lineage=1), Verdict.PASS_WRONG_LINEAGE),
        (pass_make(peer_id="QmAlice"), Verdict.PASS_WRONG_PEER),
        (pass_make(key=OTHER_SITE), Verdict.PASS_UNKNOWN_KEY),
        (GOOD[:-8] + "AAAAAAAA", Verdict.PASS_BAD_SIGNATURE),
        (pass_make(typ=TYP_CONFIG), Verdict.PASS_BAD_SIGNATURE),
        ("nonsense", Verdict.PASS_BAD_SIGNATURE),
        ("a.b.c", Verdict.PASS_BAD_SIGNATURE),
        (pass_make(age=-timedelta(minutes=5)), Verdict.CLOCK_OFF),
    ],
)
def test_each_fault_has_its_own_verdict(token: str, verdict: Verdict) -> None:
    assert judge(token) is verdict


def test_a_stolen_pass_is_worth_nothing_to_another_peer() -> None:
    assert judge(GOOD, peer_id="QmMallory") is Verdict.PASS_WRONG_PEER


def test_a_revoked_peer_is_out_whatever_it_shows() -> None:
    view = GateView(keys=(SITE,), contact_at=NOW, revoked=frozenset({"QmBob"}))
    for token in (GOOD, "", pass_make(run="other")):
        assert judge(token, view=view, is_known=True) is Verdict.PEER_REVOKED


@given(
    minutes=st.integers(min_value=-2, max_value=200),
    is_known=st.booleans(),
    silence=st.one_of(st.none(), st.integers(min_value=0, max_value=600)),
)
def test_grace_is_for_the_known_and_for_when_the_site_is_lost(
    minutes: int, is_known: bool, silence: int | None
) -> None:
    contact = None if silence is None else NOW - timedelta(seconds=silence)
    token = pass_make(age=timedelta(minutes=minutes))
    verdict = judge(token, view=GateView(keys=(SITE,), contact_at=contact), is_known=is_known)
    is_alone = silence is None or silence > 90
    if minutes < -1:
        assert verdict is Verdict.CLOCK_OFF
    elif minutes < 30 or (minutes < 90 and (is_known or is_alone)):
        assert verdict is Verdict.ADMITTED
    else:
        assert verdict is Verdict.PASS_EXPIRED


@given(token=st.text(max_size=300), peer_id=st.text(max_size=60), is_known=st.booleans())
def test_no_text_is_a_pass(token: str, peer_id: str, is_known: bool) -> None:
    assert judge(token, peer_id, is_known=is_known) is not Verdict.ADMITTED


@given(place=st.integers(min_value=0, max_value=len(GOOD) - 2), letter=st.sampled_from("Ab0-_."))
def test_a_pass_with_another_letter_is_no_pass(place: int, letter: str) -> None:
    changed = GOOD[:place] + letter + GOOD[place + 1 :]
    assert (judge(changed) is Verdict.ADMITTED) == (changed == GOOD)


@given(
    run=st.sampled_from(["demo", "other"]),
    lineage=st.integers(min_value=1, max_value=3),
    holder=st.sampled_from(["QmBob", "QmAlice"]),
    peer_id=st.sampled_from(["QmBob", "QmAlice"]),
    revoked=st.frozensets(st.sampled_from(["QmBob", "QmAlice"])),
)
def test_only_the_named_peer_of_this_swarm_is_admitted(
    run: str, lineage: int, holder: str, peer_id: str, revoked: frozenset[str]
) -> None:
    token = pass_make(run=run, lineage=lineage, peer_id=holder)
    view = GateView(keys=(SITE,), contact_at=NOW, revoked=revoked)
    is_right = (run, lineage) == ("demo", 2) and holder == peer_id and peer_id not in revoked
    assert (judge(token, peer_id, view=view) is Verdict.ADMITTED) == is_right


def test_a_list_never_lapses_and_must_be_of_the_site_and_the_run() -> None:
    body = Revocations(run="demo", seq=3, peer_ids=("QmBob",))
    old = signed(body, TYP_REVOCATIONS, age=timedelta(days=900))
    assert revocations_open(old, [SITE], run="demo").body == body
    for token, run in (
        (signed(body, TYP_REVOCATIONS, age=HOUR, key=OTHER_SITE), "demo"),
        (signed(body, TYP_PASS, age=HOUR), "demo"),
        (old, "other"),
    ):
        with pytest.raises(EnvelopeError):
            revocations_open(token, [SITE], run=run)


def test_a_pass_is_opened_after_its_end_as_well() -> None:
    assert pass_open(pass_make(age=HOUR), [SITE]).body.peer_id == "QmBob"


def test_every_refusal_is_an_error_code_with_a_remedy() -> None:
    for verdict in set(Verdict) - {Verdict.ADMITTED}:
        assert ErrorCode(verdict.value).info.remedy


def test_the_rules_come_from_the_config() -> None:
    config = RunConfig(run="demo", title="D", version=1, lineage=2, task=TaskConfig(name="tiny"))
    assert GateRules.of(config) == RULES


@given(st.binary(max_size=200))
def test_no_bytes_break_the_reading_of_a_question(data: bytes) -> None:
    try:
        AdmissionQuestion.model_validate_json(data)
    except ValueError:
        return
