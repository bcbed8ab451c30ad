"""Messages of a run as its log holds them, and the frames that browsers get. Pure.

Frames are JSON texts, each with ``type``, ``seq`` and ``as_of``:

* ``run.snapshot``: ``state``, a whole live state;
* ``run.patch``: ``patch``, absolute values. One frame may stand for several messages, so that
  numbers may jump; nothing is missing, a connection loses no frames;
* ``run.event``: ``event``. Events are numbered in the same sequence but change no state: they
  go out before the patch that covers their numbers, and a receiver's place in the sequence is
  the ``seq`` of its last snapshot or patch;
* ``run.bye``: ``reason``, ``retry_after`` in seconds.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from websockets.frames import Frame, Opcode

MAX_EVENTS = 100
"""Events in one go; a browser that missed more gets the newest of them."""

State = dict[str, Any]


class FrameText(str):
    """A frame, and the same once more as the server writes it: made once for all viewers."""

    __slots__ = ("wire",)
    wire: bytes

    def __new__(cls, text: str) -> "FrameText":
        """Return the text with its bytes on the wire (RFC 6455: one unmasked text frame)."""
        made = super().__new__(cls, text)
        made.wire = Frame(Opcode.TEXT, text.encode()).serialize(mask=False)
        return made


@dataclass(frozen=True, slots=True)
class Message:
    """One numbered message. ``patch`` is None for an event, whose ``text`` is sent as it is."""

    seq: int
    as_of: str | None
    text: str
    patch: State | None


def message_parse(text: str) -> Message:
    """Return a published message.

    Raises:
        ValueError: it is none.
    """
    try:
        body = json.loads(text)
        kind, seq = body["type"], body["seq"]
        if kind not in ("run.patch", "run.event") or not isinstance(seq, int):
            raise ValueError(f"unknown message {kind} {seq}")
        patch = body["patch"] if kind == "run.patch" else None
        return Message(seq, body.get("as_of"), text, patch)
    except (KeyError, TypeError) as error:
        raise ValueError(f"not a live message: {error!r}") from error


def patches_merge(patches: Iterable[State]) -> State:
    """Return one patch with the effect of several in their order."""
    merged: State = {}
    for patch in patches:
        peers = dict(merged.get("peers", {}))
        for key, change in patch.get("peers", {}).items():
            before = peers.get(key)
            peers[key] = {**before, **change} if before and change else change
        merged.update(patch)
        if peers or "peers" in merged:
            merged["peers"] = peers
    return merged


def frames_make(messages: Sequence[Message]) -> list[str]:
    """Return the frames that bring a receiver forward by these messages."""
    frames = [message.text for message in messages if message.patch is None][-MAX_EVENTS:]
    patches = [message for message in messages if message.patch is not None]
    if patches:
        last = patches[-1]
        body = patches_merge(message.patch or {} for message in patches)
        frames.append(frame_text("run.patch", last.seq, last.as_of, patch=body))
    return frames


def snapshot_frame(state: State) -> str:
    """Return the frame that holds a whole live state."""
    return frame_text("run.snapshot", state["seq"], state["as_of"], state=state)


def bye_frame(seq: int, *, reason: str, retry_after: float) -> str:
    """Return the last frame of a connection that the server ends; ``retry_after`` in seconds."""
    return frame_text("run.bye", seq, None, reason=reason, retry_after=retry_after)


def frame_text(kind: str, seq: int, as_of: str | None, **members: Any) -> str:
    """Return a frame."""
    body = {"type": kind, "seq": seq, "as_of": as_of, **members}
    return json.dumps(body, separators=(",", ":"))
