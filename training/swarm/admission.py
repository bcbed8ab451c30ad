"""Why the swarm does not let a peer in: hivemind's refusals look like peers that are not there.

A peer that is refused asks one that should know. Anybody may ask, as those who are refused are
the ones to ask; the answer is the verdict on the asker and the answerer's time, nothing else.
"""

import asyncio
import logging
import multiprocessing as mp
import time
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from hivemind import DHT
from hivemind.dht.node import DHTNode
from hivemind.p2p import P2P, PeerID
from hivemind.p2p.p2p_daemon_bindings.datastructures import StreamInfo
from hivemind.utils.multiaddr import Multiaddr
from pydantic import ValidationError

from training.client.swarm_key import SwarmKey
from training.protocol.admission import AdmissionAnswer, AdmissionQuestion, Verdict
from training.protocol.names import admission_protocol
from training.swarm.clock import swarm_time
from training.swarm.gatekeeper import Gatekeeper
from training.swarm.processes import children_guard
from training.swarm.relay import relay_off

_log = logging.getLogger(__name__)
MAX_CLOCK_SECONDS = 3.0
"""hivemind refuses peers whose clocks differ by more."""
_MAX_QUESTION = 16_384
_READ_SECONDS = 3.0
_SECONDS_PER_QUESTION = 1.0
_BURST = 5
_MAX_ASKERS = 1024
_MAX_AT_ONCE = 16
_ASK_SECONDS = 10.0


class AskLimit:
    """So many questions of one peer, and so many at once. Bounded: old askers are forgotten."""

    def __init__(self) -> None:
        self._due: OrderedDict[str, float] = OrderedDict()
        self.num_running = 0

    def allows(self, peer_id: str, now: float) -> bool:
        """Return whether a peer may ask now (seconds of any steady clock)."""
        due = max(self._due.get(peer_id, now), now)
        if due - now > _BURST * _SECONDS_PER_QUESTION or self.num_running >= _MAX_AT_ONCE:
            return False
        self._due[peer_id] = due + _SECONDS_PER_QUESTION
        self._due.move_to_end(peer_id)
        while len(self._due) > _MAX_ASKERS:
            self._due.popitem(last=False)
        return True


def answer_of(
    gatekeeper: Gatekeeper, peer_id: str, question: AdmissionQuestion, now: float
) -> AdmissionAnswer:
    """Return what a peer is told that asks whether it would be let in."""
    verdict = gatekeeper.judge(peer_id, question.peer_pass)
    if verdict is Verdict.ADMITTED and abs(question.now - now) > MAX_CLOCK_SECONDS:
        verdict = Verdict.CLOCK_OFF
    return AdmissionAnswer(verdict=verdict, now=now)


def admission_serve(dht: Any, *, timeout: float = 10.0) -> None:
    """Have a DHT peer answer questions from now on."""
    dht.run_coroutine(_serve, return_future=True).result(timeout)


def admission_ask(
    *, key: SwarmKey, run_id: str, addresses: Sequence[str], peer_pass: str
) -> AdmissionAnswer | None:
    """Ask the peers at some addresses, one after another, as the owner of ``key``; takes seconds.

    Returns None when nobody answers. Call it from the main thread, with no peer of that key
    running: it starts one in a process of its own for this.
    """
    children_guard()
    context = mp.get_context("fork")
    here, there = context.Pipe(duplex=False)
    args = (there, key, run_id, list(addresses), peer_pass)
    process = context.Process(target=_ask_in_child, args=args, daemon=False)
    process.start()
    there.close()
    try:
        text = here.recv() if here.poll(_ASK_SECONDS) else ""
        return AdmissionAnswer.model_validate_json(text) if text else None
    except (EOFError, OSError, ValidationError):
        return None
    finally:
        process.join(2.0)
        if process.is_alive():
            process.kill()
        here.close()


async def _serve(dht: DHT, node: DHTNode) -> None:
    gatekeeper, limit = dht.gatekeeper, AskLimit()

    async def handle(
        info: StreamInfo, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        peer_id = info.peer_id.to_base58()
        with suppress(OSError, TimeoutError, ValueError, asyncio.IncompleteReadError):
            if limit.allows(peer_id, time.monotonic()):
                limit.num_running += 1
                try:
                    await _answer(gatekeeper, peer_id, reader, writer)
                finally:
                    limit.num_running -= 1
        writer.close()

    await node.p2p.add_binary_stream_handler(admission_protocol(dht.run_id), handle)


async def _answer(
    gatekeeper: Gatekeeper, peer_id: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    line = await asyncio.wait_for(reader.readline(), _READ_SECONDS)
    question = AdmissionQuestion.model_validate_json(line[:_MAX_QUESTION])
    answer = answer_of(gatekeeper, peer_id, question, swarm_time())
    writer.write(answer.model_dump_json().encode() + b"\n")
    await writer.drain()


def _ask_in_child(
    pipe: Any, key: SwarmKey, run_id: str, addresses: list[str], peer_pass: str
) -> None:
    text = ""
    with suppress(Exception):  # no answer is an answer
        text = asyncio.run(
            asyncio.wait_for(_ask_all(key, run_id, addresses, peer_pass), _ASK_SECONDS - 1)
        )
    pipe.send(text)
    pipe.close()


async def _ask_all(key: SwarmKey, run_id: str, addresses: list[str], peer_pass: str) -> str:
    relay_off()
    p2p = await P2P.create(
        identity_path=str(key.path),
        dht_mode="client",
        no_listen=True,
        use_relay=False,
        auto_nat=False,
        nat_port_map=False,
    )
    try:
        for address in addresses:
            with suppress(Exception):
                return await _ask(p2p, run_id, Multiaddr(address), peer_pass)
    finally:
        await p2p.shutdown()
    return ""


async def _ask(p2p: P2P, run_id: str, address: Multiaddr, peer_pass: str) -> str:
    name = address["p2p"]
    peer = PeerID.from_base58(name)
    connect = p2p._client.connect(peer, [address.decapsulate("/p2p/" + name)])
    await asyncio.wait_for(connect, _READ_SECONDS)
    _, reader, writer = await p2p.call_binary_stream_handler(peer, admission_protocol(run_id))
    question = AdmissionQuestion(peer_pass=peer_pass, now=swarm_time())
    writer.write(question.model_dump_json().encode() + b"\n")
    await writer.drain()
    line = await asyncio.wait_for(reader.readline(), _READ_SECONDS)
    writer.close()
    return AdmissionAnswer.model_validate_json(line).model_dump_json()
