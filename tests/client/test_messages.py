"""What moderators write reaches the terminal once, and is harmless there."""

import unicodedata
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from tests.client.stand_in_site import StandInSite, config_make
from tests.client.test_heartbeat import PASS, Told
from training.client.heartbeat import Heartbeat, HeartbeatEvents, note_sentence
from training.client.join import Joiner
from training.client.plaintext import MAX_TEXT, text_safe
from training.protocol.api import PassRequest, PeerNote

NOW = datetime(2026, 12, 2, tzinfo=UTC)


def note(number: int, text: str = "update your driver", sender: str = "alice") -> PeerNote:
    return PeerNote(id=number, text=text, sender=sender, sent_at=NOW)


def test_each_message_is_told_once_and_acknowledged(site: StandInSite, joiner: Joiner) -> None:
    told: list[str] = []
    site.config = config_make()
    plain = Told().events()
    events = HeartbeatEvents(
        plain.progress, plain.command, plain.config, plain.refused, message=told.append
    )
    heartbeat = Heartbeat(joiner, joiner.join(), events)
    site.messages = [note(3).model_dump(mode="json"), note(7).model_dump(mode="json")]
    heartbeat.beat()
    heartbeat.beat()
    assert told == ["Message from alice: update your driver"] * 2
    first, second = (call.body for call in site.calls if call.path == PASS)
    assert "message_seen" not in first, "a site from before messages would refuse it"
    assert second["message_seen"] == 7


def test_a_report_says_nothing_of_messages_before_the_first() -> None:
    assert "message_seen" not in PassRequest().model_dump()
    assert PassRequest(message_seen=4).model_dump()["message_seen"] == 4


def test_escape_codes_and_turned_writing_do_nothing() -> None:
    evil = note(1, "\x1b[2J\x1b]0;pwned\x07 hi\r\nthere \u202egnp.exe\u202c\x9b31m", "ali\x1bce")
    assert note_sentence(evil) == "Message from ali ce: [2J ]0;pwned hi there gnp.exe 31m"
    assert note_sentence(note(1, "x", "\x1b")) == "Message from the organisers: x"


@given(st.text(max_size=2000))
def test_safe_text_is_one_short_printable_line(text: str) -> None:
    safe = text_safe(text)
    assert len(safe) <= MAX_TEXT
    assert safe.isprintable()
    assert not any(unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp", "Co", "Cs") for c in safe)
    assert text_safe(safe) == safe
