"""Everything from a session to the end of training."""

import hashlib
import logging
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from functools import partial
from itertools import chain

import torch

from training.client.errors import ClientError, ExitCode, code_error
from training.client.status import StatusFile
from training.protocol.claims import CheckpointManifest
from training.protocol.errors import ErrorCode
from training.protocol.metrics import PeerMetrics
from training.protocol.states import PeerState
from training.swarm.dht import SwarmError, metrics_store
from training.swarm.optimizer import SwarmOptimizer
from training.swarm.processes import swarm_log_to
from training.swarm.state_files import StateShapeError, schema_sha256
from training.tasks.registry import task_get
from training.tasks.task import Batch, Task, TaskError
from training.trainer.assist import AssistingLoop
from training.trainer.devices import (
    Place,
    batches_split,
    micro_batch_default,
    micro_batch_fit,
    place_choose,
)
from training.trainer.entry import Membership, swarm_enter
from training.trainer.loop import TrainingLoop
from training.trainer.member import MemberLoop
from training.trainer.publisher import Publisher
from training.trainer.session import TrainerSession, TrainerUI

LoopMake = Callable[[SwarmOptimizer, Publisher[PeerMetrics]], MemberLoop]

_log = logging.getLogger(__name__)
_GOODBYE_SECONDS = 1.0
_STORE_SECONDS = 10.0
_STATES = {"joining": PeerState.JOINING, "syncing": PeerState.SYNCING}


def trainer_run(session: TrainerSession, *, ui: TrainerUI) -> int:
    """Train, or assist, until stopped; call it from the main thread. Return an exit code.

    Raises:
        ClientError: it cannot go on; the person is told what happened and what to do.
    """
    swarm_log_to(session.work_dir / "swarm.log")
    status = StatusFile(session.work_dir, role=session.role, peer_id=session.key.peer_id)
    status.start()
    try:
        _Trainer(session, status, ui).run()
        if session.control.refusal is not None:
            raise session.control.refusal
        return ExitCode.RUN_OVER if session.control.run_is_over else ExitCode.FINE
    except TaskError as error:
        failure = ClientError("task_unusable", error.detail, error.remedy, exit_code=ExitCode.USAGE)
        status.fail(failure)
        raise failure from error
    except StateShapeError as error:
        failure = code_error(ErrorCode.MODEL_MISMATCH, str(error))
        status.fail(failure)
        raise failure from error
    except MemoryError as error:
        failure = ClientError(
            "memory_too_small",
            f"this machine's memory is too small for the run ({error})",
            "Close other programs, or join with a machine that has more memory.",
            exit_code=ExitCode.HARDWARE,
        )
        status.fail(failure)
        raise failure from error
    except ClientError as error:
        status.fail(error)
        raise
    finally:
        status.update(phase="leaving")
        status.stop()


def schema_check(model: torch.nn.Module, checkpoint: CheckpointManifest | None) -> None:
    """Compare the model with the run's newest checkpoint before any peer is bothered.

    Raises:
        StateShapeError: it has other tensors.
    """
    wanted = None if checkpoint is None else checkpoint.schema_sha256
    if wanted is not None and wanted != schema_sha256(model):
        raise StateShapeError(
            "the model that this machine builds has other tensors than the run's checkpoint"
        )


class _Trainer:
    """A model with its data, in and out of the swarm as often as it takes."""

    def __init__(self, session: TrainerSession, status: StatusFile, ui: TrainerUI) -> None:
        self._session, self._status, self._ui = session, status, ui

    def run(self) -> None:
        session = self._session
        self._ui.phase("preparing model and data")
        place = place_choose(threads=session.threads)
        task = task_get(session.config.task.name)
        model = task.model_build(session.config, session.artifacts)
        schema_check(model, session.checkpoint)
        loop_make = self._assisting if session.assists else self._training(task, model, place)
        while not session.control.stopping.is_set():
            membership = swarm_enter(session, model, self._tell)
            if membership is None:
                return
            try:
                self._take_part(membership, loop_make)
                return
            except SwarmError as error:
                _log.warning("run %s: %s; entering anew", session.config.run, error.detail)
                self._ui.line(f"{error.detail}; entering anew")
            finally:
                self._ui.phase("leaving")
                membership.leave()

    def _take_part(self, membership: Membership, loop_make: LoopMake) -> None:
        publisher = Publisher(
            partial(self._publish, membership), seconds=self._session.config.report.publish_seconds
        )
        publisher.start()
        try:
            loop_make(membership.optimizer, publisher).run()
        finally:
            publisher.stop(timeout=_GOODBYE_SECONDS)

    def _training(self, task: Task, model: torch.nn.Module, place: Place) -> LoopMake:
        batches = self._batches(task, model.to(place.device), place)

        def loop_make(optimizer: SwarmOptimizer, publisher: Publisher[PeerMetrics]) -> MemberLoop:
            return TrainingLoop(
                session=self._session,
                task=task,
                model=model,
                place=place,
                batches=batches,
                optimizer=optimizer,
                publisher=publisher,
                status=self._status,
                ui=self._ui,
            )

        return loop_make

    def _assisting(
        self, optimizer: SwarmOptimizer, publisher: Publisher[PeerMetrics]
    ) -> MemberLoop:
        # Averages are made in host memory: the model stays there, and a GPU has nothing to do.
        return AssistingLoop(
            session=self._session,
            optimizer=optimizer,
            publisher=publisher,
            status=self._status,
            ui=self._ui,
        )

    def _publish(self, membership: Membership, metrics: PeerMetrics) -> None:
        stored: Future[bool] = metrics_store(
            membership.dht,
            run_id=self._session.config.swarm_id,
            key=self._session.key,
            metrics_jws=self._session.sign_metrics(metrics),
            metrics=metrics,
            expires_seconds=self._session.config.report.metrics_expire_seconds,
        )
        stored.result(_STORE_SECONDS)

    def _batches(self, task: Task, model: torch.nn.Module, place: Place) -> Iterator[Batch]:
        session = self._session
        build = partial(task.batches, session.config, session.artifacts, seed=self._data_seed())
        if session.micro_batch is not None:
            return build(micro_batch=session.micro_batch)
        largest = micro_batch_default(place, session.config.swarm.target_batch_size)
        stream = build(micro_batch=largest)
        sample = next(stream)

        def micro_step(number: int) -> None:
            batch = {name: tensor[:number] for name, tensor in sample.items()}
            with place.autocast():
                loss, _ = task.loss(model, place.move(batch))
            loss.backward()
            loss.item()
            model.zero_grad()

        samples = micro_batch_fit(largest, micro_step)
        _log.info("run %s: micro-batches of %d on %s", session.config.run, samples, place.device)
        return batches_split(chain([sample], stream), samples)

    def _data_seed(self) -> int:
        # The device's own order; another one after a restart, or the beginning of the data
        # would be trained on more than the rest.
        text = f"{self._session.key.thumbprint} {time.time_ns()}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:7])

    def _tell(self, phase: str, text: str) -> None:
        self._status.update(phase=phase)
        self._session.control.report(state=_STATES[phase])
        self._ui.phase(text)
