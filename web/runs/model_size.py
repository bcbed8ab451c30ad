"""How large a model of a built-in task is, and how much one sample costs. Pure, without torch.

The number of parameters is exact; memory and work are estimates that comparisons rest on.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_BYTES_PER_PARAMETER = 32
"""In float32: weights, gradients, two statistics of LAMB, and as much again for averaging."""
_RUNTIME_BYTES = 700 * 2**20
"""Of Python with its libraries and the process that talks to peers."""


@dataclass(frozen=True)
class ModelSize:
    """``memory_bytes``: of a trainer that computes one sample at a time; ``work``: operations of
    one sample, good for ratios."""

    num_parameters: int
    memory_bytes: int
    work: float


def model_size(task: str, params: Mapping[str, Any]) -> ModelSize | None:
    """Return the size of a task's model; None: the site knows too little of it.

    ``params`` have every value filled in and fit the task's schema.
    """
    try:
        return {"albert": _albert, "tiny": _tiny}[task](params)
    except (KeyError, TypeError):
        return None


def _albert(params: Mapping[str, Any]) -> ModelSize:
    vocab, embedding, hidden = (params[n] for n in ("vocab_size", "embedding_size", "hidden_size"))
    inner, layers, heads = (params[n] for n in ("intermediate_size", "layers", "heads"))
    length = params["sequence_length"]
    layer = 4 * (hidden**2 + hidden) + 2 * hidden  # attention and its norm
    layer += 2 * hidden * inner + inner + hidden + 2 * hidden  # feed-forward and its norm
    word = (vocab + length + 2 + 2) * embedding + embedding * hidden + hidden
    heads_out = hidden * embedding + 3 * embedding + vocab + 2 * hidden + 2
    number = word + params["groups"] * layer + hidden**2 + hidden + heads_out
    kept = 2 * layers * length * (34 * hidden + 5 * heads * length) + 8 * length * vocab
    per_token = layers * (layer + 2 * length * hidden) + 2 * hidden * embedding + vocab * embedding
    return _size(number, kept, 6.0 * length * per_token)


def _tiny(params: Mapping[str, Any]) -> ModelSize:
    features, hidden, classes = (params[n] for n in ("features", "hidden", "classes"))
    number = features * hidden + hidden + 2 * hidden + hidden * classes + classes
    return _size(number, 8 * (features + 4 * hidden + classes), 6.0 * number)


def _size(number: int, kept: int, work: float) -> ModelSize:
    memory = _RUNTIME_BYTES + _BYTES_PER_PARAMETER * number + kept
    return ModelSize(number, memory, work)
