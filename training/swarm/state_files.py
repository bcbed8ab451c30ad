"""Model and optimizer as safetensors files: data only, nothing in them is ever executed."""

import hashlib
import json
import math
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, load_model, save_file, save_model

MODEL_FILE = "model.safetensors"
OPTIMIZER_FILE = "optimizer.safetensors"


class StateError(Exception):
    """A training state cannot be used."""


class StateShapeError(StateError):
    """A training state is of another model."""


def schema_sha256(model: torch.nn.Module) -> str:
    """Return a hash of the names, shapes and types of a model's tensors."""
    entries = sorted(
        [name, list(tensor.shape), str(tensor.dtype)] for name, tensor in model.state_dict().items()
    )
    return hashlib.sha256(json.dumps(entries, separators=(",", ":")).encode()).hexdigest()


def state_save(
    folder: Path, *, model: torch.nn.Module, optimizer: torch.optim.Optimizer, epoch: int
) -> None:
    """Write both files. Tied weights are written once.

    Optimizer tensors are named ``<number of the parameter>.<name>``; what is no tensor stands
    as JSON in the file's metadata.
    """
    save_model(model, str(folder / MODEL_FILE), metadata={"epoch": str(epoch)})
    state = optimizer.state_dict()
    tensors: dict[str, torch.Tensor] = {}
    values: dict[str, dict[str, Any]] = {}
    for number, entries in state["state"].items():
        for name, value in entries.items():
            if isinstance(value, torch.Tensor):
                tensors[f"{number}.{name}"] = value.detach().cpu().contiguous()
            else:
                values.setdefault(str(number), {})[name] = value
    rest = json.dumps({"values": values, "param_groups": state["param_groups"]})
    save_file(tensors, str(folder / OPTIMIZER_FILE), metadata={"epoch": str(epoch), "state": rest})


def state_load(folder: Path, *, model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Read both files into ``model`` and ``optimizer``.

    Raises:
        StateError: unreadable, of another model or optimizer, or not finite. The optimizer is
            unchanged then; the model may be half read.
    """
    try:
        path = folder / OPTIMIZER_FILE
        with safe_open(str(path), framework="pt") as file:
            rest = json.loads((file.metadata() or {})["state"])
        tensors = load_file(str(path))
        state: dict[int, dict[str, Any]] = {int(k): dict(v) for k, v in rest["values"].items()}
        for name, tensor in tensors.items():
            number, _, key = name.partition(".")
            state.setdefault(int(number), {})[key] = tensor
        missing, unexpected = load_model(model, str(folder / MODEL_FILE))
        if missing or unexpected:
            raise StateError(f"parameters do not fit: {sorted([*missing, *unexpected])[:3]}")
        finite_check([*model.state_dict().values(), *tensors.values()])
        _shapes_check(optimizer, state)
        optimizer.load_state_dict({"state": state, "param_groups": rest["param_groups"]})
    except (OSError, SafetensorError, KeyError, ValueError, TypeError, RuntimeError) as error:
        raise StateError(f"the checkpoint does not fit this run: {error}") from error


def finite_check(tensors: list[torch.Tensor]) -> None:
    """Refuse tensors with NaN or infinity.

    Raises:
        StateError: there is one.
    """
    for number, tensor in enumerate(tensors):
        if not bool(torch.isfinite(tensor).all()):
            raise StateError(f"tensor {number} of the state is not finite")


def values_check(values: list[Any]) -> None:
    """Refuse optimizer values that are NaN or infinite.

    Raises:
        StateError: there is one.
    """
    if any(isinstance(value, float) and not math.isfinite(value) for value in values):
        raise StateError("a value of the optimizer's state is not finite")


def _shapes_check(optimizer: torch.optim.Optimizer, state: dict[int, dict[str, Any]]) -> None:
    # load_state_dict takes any shape, and the next optimizer step would fail.
    for number, entries in optimizer.state_dict()["state"].items():
        for name, value in entries.items():
            kept = state.get(number, {}).get(name)
            if isinstance(value, torch.Tensor) and (
                not isinstance(kept, torch.Tensor) or kept.shape != value.shape
            ):
                raise StateError(f"{number}.{name} of the optimizer does not fit")
