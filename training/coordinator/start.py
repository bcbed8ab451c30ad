"""Entering the swarm, and building the training state that the coordinator holds."""

import logging
import time
from collections.abc import Sequence
from typing import Any

from training.client.gate import gate_for
from training.coordinator.known_peers import addresses_alive
from training.coordinator.session import CoordinatorSession
from training.swarm.dht import SwarmError, dht_start
from training.swarm.donor import Donor
from training.swarm.recorder import ProgressRecorder
from training.tasks.optim import optimizer_build, scheduler_build
from training.tasks.registry import task_get

logger = logging.getLogger(__name__)
_PAUSE_SECONDS = 1.0


def dht_join(
    session: CoordinatorSession, recorder: ProgressRecorder, addresses: Sequence[str]
) -> Any:
    """Start the bootstrap peer, inside the existing swarm if any of ``addresses`` answers.

    Raises:
        SwarmError: the port or the identity is in use, or p2pd does not start.
    """
    alive = addresses_alive(addresses)
    # All together; once more, as a busy peer may be late; then one by one; at last alone.
    attempts = [alive, alive, *([a] for a in alive[:4]), []] if alive else [[]]
    for number, initial_peers in enumerate(attempts):
        try:
            dht = _dht_start(session, recorder, initial_peers)
        except SwarmError as error:
            if not initial_peers:
                raise
            logger.warning(
                "run %s: cannot join through %d known peers: %s",
                *(session.config.run, len(initial_peers), error.detail),
            )
            time.sleep(_PAUSE_SECONDS if number == 0 else 0.0)
            continue
        logger.info(
            "run %s: started with %d of %d known peers",
            *(session.config.run, len(initial_peers), len(addresses)),
        )
        return dht
    raise AssertionError("the last attempt returns or raises")


def _dht_start(
    session: CoordinatorSession, recorder: ProgressRecorder, initial_peers: Sequence[str]
) -> Any:
    return dht_start(
        key=session.key,
        run_id=session.config.swarm_id,
        initial_peers=initial_peers,
        bind=session.bind,
        port=session.port,
        client_mode=False,
        announce=session.announce,
        recorder=recorder,
        gate=gate_for(session.config, session.gate),
    )


def donor_make(session: CoordinatorSession, dht: Any) -> Donor:
    """Build the run's model and optimizer, as every trainer does, and hold them in a donor.

    Raises:
        TaskError: the config's task is unknown or does not fit.
    """
    config = session.config
    model = task_get(config.task.name).model_build(config, session.artifacts)
    groups, optimizer_factory = optimizer_build(config.optimizer, model)
    return Donor(
        dht=dht,
        run_id=config.swarm_id,
        swarm=config.swarm,
        model=model,
        param_groups=groups,
        optimizer_factory=optimizer_factory,
        scheduler_factory=scheduler_build(config.optimizer),
    )
