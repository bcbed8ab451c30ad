"""What a run's page is told: the newest state, the last messages, and the push of each new one.

Redis holds copies only. When it is away, writers go on and watchers read from the database.

Messages are dicts ready for JSON:
``{"type": "run.patch", "seq", "as_of", "patch": {…}}`` or
``{"type": "run.event", "seq", "as_of", "event": {"kind", "text", "at"}}``.
Each ``seq`` of a run belongs to one message; a number that never comes counts as a lost message
and costs every watcher a whole snapshot.
"""

import json
import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol, TypeVar, cast

from django.conf import settings
from redis.exceptions import RedisError

from web.core.redis import (
    access_channel,
    live_channel,
    live_ring_key,
    live_state_key,
    redis_client,
)

log = logging.getLogger(__name__)

RING_SIZE = 512
"""Messages kept for browsers that come back; raise it when short breaks cost whole snapshots."""
RING_BYTES = 4 * 1024 * 1024
"""Of all kept messages of a run together: with 10,000 peers one patch alone takes 1.3 MB."""
RING_SECONDS = 3600
"""After so long a silence nothing is kept: whoever comes back then gets a whole state."""
STATE_SECONDS = 24 * 3600
"""After so long a silence no state is kept: runs end, and the database has every one."""

Message = dict[str, Any]
Result = TypeVar("Result")
Kept = TypeVar("Kept")

# The id of an entry is "<bytes before it>-<its own bytes>": the newest id holds the sum, and what
# lies too far back goes by its id, unread. The newest stays, however long it is.
_RING_ADD = """
local start = 0
if redis.call('EXISTS', KEYS[1]) == 1 then
  local info = redis.call('XINFO', 'STREAM', KEYS[1])
  for i = 1, #info, 2 do
    if info[i] == 'last-generated-id' then
      local before, own = string.match(info[i + 1], '^(%d+)-(%d+)$')
      start = tonumber(before) + tonumber(own) + 1
    end
  end
end
local size = string.len(ARGV[1])
redis.call('XADD', KEYS[1], 'MAXLEN', ARGV[2], string.format('%.0f-%d', start, size), 'm', ARGV[1])
local oldest = math.min(start, math.max(0, start + size + 1 - tonumber(ARGV[3])))
redis.call('XTRIM', KEYS[1], 'MINID', string.format('%.0f', oldest))
redis.call('EXPIRE', KEYS[1], ARGV[4])
"""


class LiveStore(Protocol):
    """Where copies of the live data are kept and pushed from."""

    def publish(self, slug: str, text: str, state: str | None) -> None: ...
    def state_write(self, slug: str, state: str) -> None: ...
    def state_read(self, slug: str) -> str | None: ...
    def ring(self, slug: str) -> list[str]: ...
    def ring_drop(self, slug: str) -> None: ...
    def access_changed(self) -> None: ...


class RedisStore:
    """The store of a real site."""

    def publish(self, slug: str, text: str, state: str | None) -> None:
        with redis_client().pipeline(transaction=True) as pipe:
            if state is not None:
                pipe.set(live_state_key(slug), state, ex=STATE_SECONDS)
            bounds = (str(RING_SIZE), str(RING_BYTES), str(RING_SECONDS))
            pipe.eval(_RING_ADD, 1, live_ring_key(slug), text, *bounds)
            pipe.publish(live_channel(slug), text)
            pipe.execute()

    def state_write(self, slug: str, state: str) -> None:
        redis_client().set(live_state_key(slug), state, ex=STATE_SECONDS)

    def state_read(self, slug: str) -> str | None:
        return cast("str | None", redis_client().get(live_state_key(slug)))

    def ring(self, slug: str) -> list[str]:
        rows = redis_client().xrevrange(live_ring_key(slug), count=RING_SIZE)
        return [fields["m"] for _, fields in reversed(cast("list[Any]", rows))]

    def ring_drop(self, slug: str) -> None:
        redis_client().delete(live_ring_key(slug))

    def access_changed(self) -> None:
        redis_client().publish(access_channel(), "")


class MemoryStore:
    """The store of tests and of one lone process. ``watchers`` are called on every push."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._states: dict[str, str] = {}
        self._rings: dict[str, deque[str]] = {}
        self.watchers: set[Callable[[str | None, str], None]] = set()
        """Called with (slug, text); slug None: access changed."""

    def publish(self, slug: str, text: str, state: str | None) -> None:
        with self._lock:
            if state is not None:
                self._states[slug] = state
            ring = self._rings.setdefault(slug, deque(maxlen=RING_SIZE))
            ring.append(text)
            ring_trim(ring, len)
            watchers = list(self.watchers)
        for watcher in watchers:
            watcher(slug, text)

    def state_write(self, slug: str, state: str) -> None:
        self._states[slug] = state

    def state_read(self, slug: str) -> str | None:
        return self._states.get(slug)

    def ring(self, slug: str) -> list[str]:
        with self._lock:
            return list(self._rings.get(slug, ()))

    def ring_drop(self, slug: str) -> None:
        with self._lock:
            self._rings.pop(slug, None)

    def access_changed(self) -> None:
        for watcher in list(self.watchers):
            watcher(None, "")

    def clear(self) -> None:
        """Forget everything (tests)."""
        with self._lock:
            self._states.clear()
            self._rings.clear()


def ring_trim(ring: deque[Kept], size: Callable[[Kept], int]) -> None:
    """Drop the oldest until all take at most RING_BYTES; the newest stays."""
    total = sum(map(size, ring))
    while total > RING_BYTES and len(ring) > 1:
        total -= size(ring.popleft())


MEMORY_STORE = MemoryStore()
_REDIS_STORE = RedisStore()


class _Outage:
    """Says once that Redis is away, and once that it is back."""

    def __init__(self) -> None:
        self._is_on = False

    def begin(self, error: Exception) -> None:
        if not self._is_on:
            log.warning(
                "Redis is away (%s): live pages stand still, everything else goes on", error
            )
        self._is_on = True

    def end(self) -> None:
        if self._is_on:
            log.warning("Redis is back: live pages go on")
        self._is_on = False


_outage = _Outage()


def _store() -> LiveStore:
    return MEMORY_STORE if settings.LIVE_BACKEND == "memory" else _REDIS_STORE


def _attempt(act: Callable[[], Result], otherwise: Result) -> Result:
    try:
        result = act()
    except (RedisError, OSError) as error:
        _outage.begin(error)
        return otherwise
    _outage.end()
    return result


def _text(body: Message) -> str:
    return json.dumps(body, separators=(",", ":"), allow_nan=False)


def event_publish(run_slug: str, message: Message, *, state: Message | None = None) -> None:
    """Push one message to everybody who watches the run; call it on commit.

    With ``state``, the newest state is kept in the same step. Never raises when Redis is away.
    """
    state_text = None if state is None else _text(state)
    text = _text(message)
    _attempt(lambda: _store().publish(run_slug, text, state_text), None)


def live_state_write(slug: str, state: Message) -> None:
    """Keep a run's newest live state. Never raises when Redis is away."""
    text = _text(state)
    _attempt(lambda: _store().state_write(slug, text), None)


def live_state_read(slug: str) -> Message | None:
    """Return the kept live state; None when there is none or Redis is away."""
    text = _attempt(lambda: _store().state_read(slug), None)
    return None if text is None else cast(Message, json.loads(text))


def live_ring(slug: str) -> list[str]:
    """Return the texts of the last messages, oldest first; none when Redis is away."""
    return _attempt(lambda: _store().ring(slug), [])


def live_ring_drop(slug: str) -> None:
    """Forget the last messages. Never raises when Redis is away."""
    _attempt(lambda: _store().ring_drop(slug), None)


def live_ring_since(slug: str, since: int) -> list[Message] | None:
    """Return the messages after ``since`` in order; None when one of them is not there any more."""
    later = [m for m in map(json.loads, live_ring(slug)) if m["seq"] > since]
    later.sort(key=lambda message: message["seq"])
    numbers = sorted({message["seq"] for message in later})
    if numbers and numbers != list(range(since + 1, numbers[-1] + 1)):
        return None
    return later


def access_changed_publish() -> None:
    """Tell every process to check its watchers' rights again; call it on commit.

    For bans and for runs that become private. Processes also look by themselves now and then.
    """
    _attempt(lambda: _store().access_changed(), None)
