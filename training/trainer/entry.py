"""Into the swarm and out of it: find peers, take over their state, leave well."""

import logging
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from training.client.errors import ClientError, ExitCode
from training.client.gate import gate_for
from training.client.refusals import PASSING, refusal_error, refusal_of
from training.protocol.admission import Verdict
from training.swarm.admission import admission_ask
from training.swarm.assist import AssistingOptimizer
from training.swarm.clock import swarm_clock_set, swarm_time
from training.swarm.dht import SwarmError, dht_start, dht_stop
from training.swarm.optimizer import SwarmOptimizer, swarm_optimizer
from training.swarm.watch import GateWatch
from training.tasks.optim import optimizer_build, scheduler_build
from training.trainer.session import TrainerSession

_log = logging.getLogger(__name__)
_GIVE_UP_SECONDS = 300.0
_SYNC_SECONDS = 60.0
"""In one swarm; then the swarm is left and looked for anew."""
_WAIT_SECONDS = (2.0, 4.0, 8.0, 15.0)


@dataclass(frozen=True)
class Membership:
    """A place in the swarm."""

    dht: Any
    optimizer: SwarmOptimizer
    watch: GateWatch

    def leave(self) -> None:
        """Say good-bye and end every process of hivemind; takes a few seconds at most."""
        self.watch.stop()
        self.optimizer.shutdown()
        dht_stop(self.dht)


def swarm_enter(
    session: TrainerSession, model: torch.nn.Module, tell: Callable[[str, str], None]
) -> Membership | None:
    """Enter the swarm and take over its state; None when told to stop meanwhile.

    A peer that trained from epoch 0 beside a running swarm would split the run, so without the
    state of ``session.min_epoch`` or newer nothing is trained: the swarm is left, and after a
    while, at another address if there is one, entered again.

    Args:
        tell: gets a phase (as in status.json) and a sentence about it.

    Raises:
        ClientError: the peers refuse us, or five minutes of attempts were in vain.
    """
    deadline = time.monotonic() + _GIVE_UP_SECONDS
    peers, attempt = tuple(session.bootstrap_peers), 0
    while not session.control.stopping.is_set():
        tell("joining", "looking for peers")
        try:
            return _enter(session, model, peers, tell)
        except SwarmError as error:
            _log.warning("run %s: %s", session.config.run, error.detail)
            refusal = _refusal(session, peers) if error.may_be_refusal else None
            if refusal is not None and (attempt > 0 or refusal.code not in PASSING):
                raise refusal from error
            if time.monotonic() > deadline:
                raise ClientError(
                    "swarm_unreachable",
                    error.detail,
                    error.remedy,
                    exit_code=ExitCode.UNREACHABLE,
                ) from error
            tell("joining", f"{error.detail}; trying again")
        pause = _WAIT_SECONDS[min(attempt, len(_WAIT_SECONDS) - 1)]
        # All trainers lose a dead peer at once: spread their return.
        session.control.wait(pause * random.uniform(0.5, 1.5))  # noqa: S311
        if session.bootstrap_refresh is not None:
            peers = tuple(session.bootstrap_refresh()) or peers
        attempt += 1
    return None


def _enter(
    session: TrainerSession,
    model: torch.nn.Module,
    peers: tuple[str, ...],
    tell: Callable[[str, str], None],
) -> Membership | None:
    config = session.config
    if session.min_epoch > 0 and not peers:
        raise SwarmError(
            "the run has begun, but no peer of it is known now",
            "Wait until a peer or the coordinator is back, then join again.",
        )
    gate = gate_for(session.config, session.gate)
    swarm_clock_set(session.clock.correction)
    dht = dht_start(
        key=session.key,
        run_id=config.swarm_id,
        initial_peers=peers,
        bind=session.bind,
        port=session.port,
        client_mode=session.client_mode,
        announce=session.announce,
        gate=gate,
    )
    watch = GateWatch(
        dht,
        key=session.key,
        gate=gate,
        clock=session.clock,
        spreads_list=False,
        revoked=lambda: session.control.refuse(refusal_error(Verdict.PEER_REVOKED)),
    )
    try:
        watch.look()
        groups, factory = optimizer_build(config.optimizer, model)
        optimizer = swarm_optimizer(
            dht=dht,
            config=config,
            key=session.key,
            param_groups=groups,
            optimizer_factory=factory,
            scheduler_factory=scheduler_build(config.optimizer),
            kind=AssistingOptimizer if session.assists else SwarmOptimizer,
            checkpoint=session.checkpoint,
        )
    except BaseException:
        dht_stop(dht)
        raise
    watch.start()
    membership = Membership(dht, optimizer, watch)
    optimizer.leaving = session.control.stopping
    try:
        _synchronise(session, optimizer, tell)
    except BaseException:
        membership.leave()
        raise
    return membership


def _refusal(session: TrainerSession, peers: tuple[str, ...]) -> ClientError | None:
    """Ask the peers that did not answer whether they refuse us."""
    gate = gate_for(session.config, session.gate)
    if gate is None:
        return None
    answer = admission_ask(
        key=session.key,
        run_id=session.config.swarm_id,
        addresses=peers,
        peer_pass=gate.view.own_pass,
    )
    return refusal_of(answer, now=swarm_time())


def _synchronise(
    session: TrainerSession, optimizer: SwarmOptimizer, tell: Callable[[str, str], None]
) -> None:
    deadline = time.monotonic() + _SYNC_SECONDS
    tell("syncing", "downloading the training state")
    while not session.control.stopping.is_set():
        optimizer.load_state_from_peers()
        if optimizer.local_epoch >= session.min_epoch and not optimizer.is_out_of_sync:
            return
        if time.monotonic() > deadline:
            raise SwarmError(
                f"no peer gave the state of epoch {session.min_epoch} or newer",
                "Wait until the coordinator or an up-to-date trainer is online, then join again.",
            )
        for note in optimizer.notes_taken():
            tell("syncing", note)
        tell("syncing", f"have epoch {optimizer.local_epoch}, waiting for a newer state")
        session.control.wait(random.uniform(1.0, 3.0))  # noqa: S311
