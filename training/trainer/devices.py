"""Where the gradients are computed: device, number format, threads, size of a micro-step."""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import torch

from training.client.hardware import cpus_usable
from training.tasks.task import Batch

_WISHED_SECONDS = 1.0
"""A micro-step should not last longer: peers wait for it at the end of an epoch."""
_DEFAULT_SAMPLES = {"cpu": 32, "cuda": 128, "mps": 64}
_SHARE_OF_TARGET = 8
"""A micro-batch is at most this part of the target batch size, or epochs overshoot it."""


@dataclass(frozen=True)
class Place:
    """A device and how to compute on it."""

    device: torch.device
    autocast_dtype: torch.dtype | None
    """None: everything in float32."""

    def autocast(self) -> AbstractContextManager[object]:
        """Return the context for a forward pass."""
        if self.autocast_dtype is None:
            return nullcontext()
        return torch.autocast(self.device.type, dtype=self.autocast_dtype)

    def move(self, batch: Batch) -> Batch:
        """Return the batch on the device; copies to a GPU overlap with computing."""
        if self.device.type == "cpu":
            return batch
        if self.device.type == "cuda":
            batch = {name: tensor.pin_memory() for name, tensor in batch.items()}
        return {name: tensor.to(self.device, non_blocking=True) for name, tensor in batch.items()}


def place_choose(*, threads: int | None) -> Place:
    """Return the best place of this machine, with torch's CPU threads set."""
    torch.set_num_threads(threads or cpus_usable())
    if torch.cuda.is_available():
        # Older GPUs emulate bfloat16; float16 would need loss scaling in every peer.
        is_recent = torch.cuda.get_device_capability()[0] >= 8
        return Place(torch.device("cuda"), torch.bfloat16 if is_recent else None)
    if torch.backends.mps.is_available():
        return Place(torch.device("mps"), None)
    return Place(torch.device("cpu"), None)


def micro_batch_default(place: Place, target_batch_size: int) -> int:
    """Return the samples of a micro-step to begin with."""
    largest = max(1, target_batch_size // _SHARE_OF_TARGET)
    return min(_DEFAULT_SAMPLES[place.device.type], largest)


def micro_batch_fit(samples: int, run: Callable[[int], None]) -> int:
    """Return the largest halving of ``samples`` for which ``run`` takes about a second at most.

    ``run(n)`` does a micro-step of ``n`` samples. Running out of memory halves too.

    Raises:
        MemoryError: not even one sample fits.
    """
    while True:
        try:
            run(samples)  # the first one warms up
            started = time.perf_counter()
            run(samples)
        except (torch.OutOfMemoryError, MemoryError) as error:
            if samples == 1:
                raise MemoryError("not even one sample fits into memory") from error
            torch.cuda.empty_cache()
            samples //= 2
            continue
        if samples == 1 or time.perf_counter() - started <= _WISHED_SECONDS:
            return samples
        samples //= 2


def batches_split(batches: Iterable[Batch], samples: int) -> Iterator[Batch]:
    """Yield the same samples in the same order, at most ``samples`` at a time."""
    for batch in batches:
        for at in range(0, len(next(iter(batch.values()))), samples):
            yield {name: tensor[at : at + samples] for name, tensor in batch.items()}
