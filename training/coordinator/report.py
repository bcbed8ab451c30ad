"""Sends snapshots to the site: numbered, signed, off the main loop, newest wins.

One snapshot waits at a time. A newer one replaces it and loses nothing, because each carries
every finished epoch that the site has not acknowledged. While the site is down the waits grow,
with jitter, up to half a minute.
"""

import logging
import random
import threading
from collections.abc import Callable
from pathlib import Path

from pydantic import BaseModel

from training.client.errors import ClientError
from training.client.files import json_read, json_write
from training.protocol.api import SnapshotRequest, SnapshotResponse
from training.protocol.metrics import SwarmSnapshot
from training.protocol.names import TYP_SNAPSHOT

logger = logging.getLogger(__name__)
FIRST_WAIT = 1.0
"""Seconds."""
LONGEST_WAIT = 30.0
SnapshotMaker = Callable[[int], SwarmSnapshot]
"""Makes the snapshot once its number is known."""


class SnapshotNumber:
    """A number that grows over restarts; it is on disk before it is used."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            kept = json_read(path) or {}
        except ClientError as error:
            logger.warning("%s; the site tells the last number", error)
            kept = {}
        self.last = int(kept.get("last", 0))

    def next(self) -> int:
        self.at_least(self.last + 1)
        return self.last

    def at_least(self, number: int) -> None:
        """Go on from ``number`` when ours is behind, as after a lost file."""
        if number > self.last:
            json_write(self._path, {"last": number})
            self.last = number


class Reporter:
    """The thread that sends snapshots."""

    def __init__(
        self,
        *,
        sign: Callable[[BaseModel, str], str],
        post: Callable[[SnapshotRequest], SnapshotResponse],
        number: SnapshotNumber,
    ) -> None:
        self._sign, self._post, self._number = sign, post, number
        self._waiting: SnapshotMaker | None = None
        self._changed = threading.Condition()
        self._stopping = self._hurry = False
        self._thread = threading.Thread(target=self._run, name="reporter", daemon=True)
        self.response: SnapshotResponse | None = None
        """The site's newest answer."""
        self.error: Exception | None = None
        """Why the newest attempt failed; None once one succeeded."""

    def start(self) -> None:
        self._thread.start()

    def offer(self, make: SnapshotMaker) -> None:
        """Hand over the newest snapshot; returns at once."""
        with self._changed:
            self._waiting = make
            self._changed.notify_all()

    def flush(self, seconds: float) -> bool:
        """Try at once, wait until nothing is left, at most ``seconds``; tell whether it is so."""
        with self._changed:
            self._hurry = True
            self._changed.notify_all()
            return self._changed.wait_for(lambda: self._waiting is None, seconds)

    def stop(self) -> None:
        """End the thread; what still waits is not sent."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        self._thread.join(1.0)

    def _run(self) -> None:
        failures = 0
        while make := self._next():
            if self.send(make):
                failures = 0
                continue
            wait = wait_seconds(failures, random.random())  # noqa: S311
            failures += 1
            with self._changed:
                self._changed.wait_for(lambda: self._stopping or self._hurry, wait)
                self._hurry = False

    def _next(self) -> SnapshotMaker | None:
        """Wait for something to send; None when it is time to stop."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._stopping)
            return None if self._stopping else self._waiting

    def send(self, make: SnapshotMaker) -> bool:
        """Send one snapshot; tell whether the site took it. Never raises."""
        try:
            number = self._number.next()
            token = self._sign(make(number), TYP_SNAPSHOT)
            response = self._post(SnapshotRequest(snapshot=token))
            self._number.at_least(response.last_seq)
        except Exception as error:  # noqa: BLE001 - whatever it is, the swarm must stay observed
            if self.error is None:
                logger.warning("snapshot not delivered, trying again: %s", error)
            self.error = error
            return False
        if self.error is not None:
            logger.info("snapshots are delivered again")
        self.error, self.response = None, response
        if not response.accepted:
            return False
        with self._changed:
            if self._waiting is make:
                self._waiting = None
                self._changed.notify_all()
        return True


def wait_seconds(failures: int, chance: float) -> float:
    """Return the wait after so many failures before this one; ``chance`` is in [0, 1)."""
    return min(LONGEST_WAIT, FIRST_WAIT * float(2 ** min(failures, 10))) * (0.5 + chance / 2)
