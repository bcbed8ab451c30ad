"""A training state from somebody else: checked, then taken over whole or not at all."""

import logging
import math
import threading
from dataclasses import dataclass
from typing import Any

import torch
from hivemind.optim.state_averager import TrainingStateAverager, dump_optimizer_state
from hivemind.utils import nested_pack
from torch import Tensor

from training.protocol.claims import CheckpointManifest
from training.swarm.averaging import norm_of
from training.swarm.state_files import StateError, StateShapeError, finite_check, values_check

_log = logging.getLogger(__name__)
_NEAR_EPOCHS = 50
_NEAR_RATIO = 3.0
_TRAINED_RATIO = 10.0
_UNTRAINED_RATIO = 100.0
_MAX_REFUSALS = 4


@dataclass(frozen=True)
class KnownState:
    """What is known beforehand of the state to come."""

    epoch: int
    parameter_norm: float
    has_schema: bool = False
    """Whether it names the model's tensors, which are this peer's: see the trainer's check."""


def known_state(manifest: CheckpointManifest | None) -> KnownState | None:
    """Return what a manifest tells of the swarm's state; old manifests tell nothing."""
    if manifest is None or manifest.parameter_norm is None:
        return None
    return KnownState(
        manifest.epoch, manifest.parameter_norm, has_schema=manifest.schema_sha256 is not None
    )


def norm_check(norm: float, *, epoch: int, own: KnownState, known: KnownState | None) -> None:
    """Refuse parameters whose norm cannot be that of this run's state.

    A checkpoint newer than the own state is the better measure, the closer the narrower: between
    epochs nearby the norm hardly changes. Untrained parameters say little.

    Raises:
        StateError: it is out of bounds, on either side.
    """
    measure, ratio = own, _TRAINED_RATIO if own.epoch else _UNTRAINED_RATIO
    if known is not None and known.epoch >= own.epoch:
        is_near = abs(epoch - known.epoch) <= _NEAR_EPOCHS
        measure, ratio = known, _NEAR_RATIO if is_near else _TRAINED_RATIO
    usual = measure.parameter_norm
    if not math.isfinite(norm) or not usual / ratio <= norm <= max(usual, 1e-6) * ratio:
        raise StateError(
            f"the norm of its parameters is {norm:.4g}, of this run's at epoch "
            f"{measure.epoch} {usual:.4g}"
        )


def state_fetch(
    averager: Any, *, min_epoch: int, known: KnownState | None = None, timeout: float
) -> int | None:
    """Take over the newest sound state that a peer gives; return its epoch, None without one.

    ``averager`` is our TrainingStateAverager. What is refused is logged, and another peer asked.

    Raises:
        StateError: all that came was refused; StateShapeError when all of it was of another
            model, and nothing says that it is they who are wrong.
    """
    avoid: list[str] = []
    refusals: list[StateError] = []
    while len(refusals) < _MAX_REFUSALS:
        offer = averager.state_ask(avoid=avoid, min_epoch=min_epoch, timeout=timeout)
        if offer is None:
            break
        avoid.append(offer.peer)
        try:
            state_take(averager, offer.tensors, offer.metadata, known=known)
        except StateError as error:
            _log.warning("%s: the state of %s is refused: %s", averager.prefix, offer.peer, error)
            refusals.append(error)
            continue
        return int(offer.metadata["epoch"])
    if not refusals:
        return None
    others = [error for error in refusals if not isinstance(error, StateShapeError)]
    if not others and known is not None and known.has_schema:
        # Else a single bad peer could send everybody home who asks it first.
        raise StateError(str(refusals[-1]))
    raise (others or refusals)[-1]


class StateFetch(threading.Thread):
    """Fetches a state and makes it the one to train with, beside whoever waits for it."""

    def __init__(self, averager: Any, *, known: KnownState | None, timeout: float) -> None:
        super().__init__(name="state-download", daemon=True)
        self._averager, self._known, self._timeout = averager, known, timeout
        self.failure: Exception | None = None

    def run(self) -> None:
        averager = self._averager
        try:
            epoch = state_fetch(
                averager,
                min_epoch=averager.local_epoch,
                known=self._known,
                timeout=self._timeout,
            )
            if epoch is not None:
                averager.state_apply(epoch)
        except Exception as error:  # noqa: BLE001 - the waiting thread decides what it means
            self.failure = error


@torch.no_grad()
def state_take(
    averager: TrainingStateAverager,
    tensors: list[Tensor],
    metadata: dict[str, Any],
    *,
    known: KnownState | None = None,
) -> None:
    """Check a state and write it over the averager's: parameters, extras, optimizer statistics.

    Hyperparameters stay this peer's own: they come from the signed config, not from a peer.

    Raises:
        StateError: it does not fit, is not finite or out of bounds; nothing is changed then.
    """
    optimizer = averager.optimizer
    parameters = parameters_of(averager)
    targets = [*parameters, *averager.extra_tensors]
    shapes = [tensor.shape for tensor in state_tensors(averager)]
    if [tensor.shape for tensor in tensors] != shapes:
        raise StateShapeError("a trainer's state has other shapes than this run's model")
    finite_check(tensors)
    epoch = metadata.get("epoch")
    own = KnownState(int(averager.local_epoch), norm_of([p.detach() for p in parameters]))
    norm = norm_of([tensor.float() for tensor in tensors[: len(parameters)]])
    norm_check(norm, epoch=epoch if isinstance(epoch, int) else 0, own=own, known=known)
    state = _optimizer_state(optimizer, metadata, tensors[len(targets) :])
    with averager.lock_averaged_tensors:
        optimizer.load_state_dict(state)
        for target, tensor in zip(targets, tensors[: len(targets)], strict=True):
            target.copy_(tensor)


def parameters_of(averager: TrainingStateAverager) -> list[Tensor]:
    """Return the optimizer's parameters."""
    return [p for group in averager.optimizer.param_groups for p in group["params"]]


def state_tensors(averager: TrainingStateAverager) -> list[Tensor]:
    """Return all tensors of a state, in the order in which they travel."""
    _, statistics = dump_optimizer_state(averager.optimizer)
    return [*parameters_of(averager), *averager.extra_tensors, *statistics]


def _optimizer_state(
    optimizer: torch.optim.Optimizer, metadata: dict[str, Any], statistics: list[Tensor]
) -> dict[str, Any]:
    entries = metadata.get("optimizer_metadata")
    if not isinstance(entries, list | tuple) or not all(isinstance(e, dict) for e in entries):
        raise StateError("a trainer's optimizer state is malformed")
    values_check([entry.get("value") for entry in entries])
    own = optimizer.state_dict()
    try:
        flat = [
            statistics[entry["index"]] if entry["type"] == "tensor" else entry["value"]
            for entry in entries
        ]
        state: dict[str, Any] = nested_pack(flat, structure=own)
        for number, named in own["state"].items():
            for name, value in named.items():
                _statistic_check(name, state["state"][number][name], value)
        steps = [int(group.get("step", 0)) for group in state["param_groups"]]
    except (RuntimeError, ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        # hivemind runs out of values inside a generator, which is a RuntimeError.
        raise StateError(f"a trainer's optimizer state does not fit: {error}") from error
    for group, step in zip(own["param_groups"], steps, strict=True):
        if "step" in group:
            group["step"] = max(0, step)
    return {"state": state["state"], "param_groups": own["param_groups"]}


def _statistic_check(name: str, value: object, own: object) -> None:
    if not isinstance(own, Tensor):
        return
    if not isinstance(value, Tensor) or value.shape != own.shape:
        raise ValueError(f"{name} has another shape")
    if name.endswith("_sq") and bool((value < 0).any()):
        raise ValueError(f"{name} is a mean of squares and has negative values")
