"""One merged patch has the effect of the patches that it stands for."""

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.client import ClientProtocol
from websockets.frames import Frame, Opcode
from websockets.protocol import State
from websockets.uri import parse_uri

from web.live.frames import (
    MAX_EVENTS,
    FrameText,
    Message,
    frames_make,
    message_parse,
    patches_merge,
    snapshot_frame,
)
from web.monitoring.livestate import state_apply, state_diff

values = st.none() | st.integers(0, 3) | st.text("ab", max_size=2)
peer = st.fixed_dictionaries({"epoch": values, "loss": values})
states = st.fixed_dictionaries(
    {"epoch": values, "loss": values, "peers": st.dictionaries(st.sampled_from("abc"), peer)}
)


@given(st.lists(states, min_size=2, max_size=6))
def test_merged_patches_lead_from_the_first_state_to_the_last(steps: list[dict[str, Any]]) -> None:
    patches = [state_diff(old, new) for old, new in pairwise(steps)]
    assert state_apply(steps[0], patches_merge(patches)) == steps[-1]


@given(st.lists(states, min_size=3, max_size=6), st.integers(0, 2))
def test_a_merged_patch_does_no_harm_to_a_state_that_has_some_of_it(
    steps: list[dict[str, Any]], known: int
) -> None:
    patches = [state_diff(old, new) for old, new in pairwise(steps)]
    assert state_apply(steps[known], patches_merge(patches)) == steps[-1]


def test_a_peer_that_left_and_came_back_is_whole() -> None:
    merged = patches_merge([{"peers": {"a": None}}, {"peers": {"a": {"epoch": 1}}}])
    assert merged == {"peers": {"a": {"epoch": 1}}}


def event_make(seq: int) -> Message:
    body = {"type": "run.event", "seq": seq, "as_of": "t", "event": {"kind": "k", "text": "x"}}
    return message_parse(json.dumps(body))


def patch_make(seq: int, **patch: Any) -> Message:
    return message_parse(
        json.dumps({"type": "run.patch", "seq": seq, "as_of": f"t{seq}", "patch": patch})
    )


def test_events_keep_their_numbers_and_come_before_the_patch_that_covers_them() -> None:
    frames = frames_make([patch_make(1, a=1), event_make(2), patch_make(3, a=2, b=1)])
    assert [json.loads(frame)["seq"] for frame in frames] == [2, 3]
    assert json.loads(frames[1]) == {
        "type": "run.patch",
        "seq": 3,
        "as_of": "t3",
        "patch": {"a": 2, "b": 1},
    }


def test_of_very_many_events_the_newest_are_sent() -> None:
    frames = frames_make([event_make(seq) for seq in range(1, MAX_EVENTS + 51)])
    assert [json.loads(frames[i])["seq"] for i in (0, -1)] == [51, MAX_EVENTS + 50]


def test_a_snapshot_names_its_number_and_holds_the_state() -> None:
    state = {"seq": 7, "as_of": None, "peers": {}}
    frame = json.loads(snapshot_frame(state))
    assert frame == {"type": "run.snapshot", "seq": 7, "as_of": None, "state": state}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        "null",
        '{"type":"run.patch","seq":1}',
        '{"type":"run.other","seq":1}',
        '{"type":"run.patch","seq":"1","patch":{}}',
    ],
)
def test_what_is_no_message_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        message_parse(text)


@pytest.mark.parametrize("length", [0, 125, 126, 65_535, 65_536, 200_000])
def test_the_bytes_of_a_frame_are_what_a_client_reads_as_its_text(length: int) -> None:
    text = "é" + "x" * length
    client = ClientProtocol(parse_uri("ws://127.0.0.1/"), state=State.OPEN, max_size=None)
    client.receive_data(FrameText(text).wire)
    (frame,) = client.events_received()
    assert isinstance(frame, Frame)
    assert (frame.opcode, frame.fin, bytes(frame.data).decode()) == (Opcode.TEXT, True, text)
