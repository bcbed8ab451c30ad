"""Where a trainer computes and how much at once."""

import time

import pytest
import torch

from training.trainer import devices
from training.trainer.devices import (
    Place,
    batches_split,
    micro_batch_default,
    micro_batch_fit,
    place_choose,
)

CPU = Place(torch.device("cpu"), None)


def test_a_machine_without_gpu_computes_in_float32_on_the_threads_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    before = torch.get_num_threads()
    try:
        assert place_choose(threads=1) == CPU
        assert torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize(
    ("capability", "dtype"), [((9, 0), torch.bfloat16), ((8, 0), torch.bfloat16), ((7, 5), None)]
)
def test_only_gpus_with_real_bfloat16_use_it(
    monkeypatch: pytest.MonkeyPatch, capability: tuple[int, int], dtype: torch.dtype | None
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: capability)
    before = torch.get_num_threads()
    try:
        place = place_choose(threads=1)
    finally:
        torch.set_num_threads(before)
    assert (place.device.type, place.autocast_dtype) == ("cuda", dtype)


def test_autocast_computes_in_its_format() -> None:
    layer, data = torch.nn.Linear(4, 4), torch.ones(2, 4)
    with Place(torch.device("cpu"), torch.bfloat16).autocast():
        assert layer(data).dtype is torch.bfloat16
    with CPU.autocast():
        assert layer(data).dtype is torch.float32


def test_a_batch_stays_where_it_is_on_a_cpu() -> None:
    batch = {"inputs": torch.ones(2)}
    assert CPU.move(batch) is batch


def test_a_micro_batch_is_a_small_part_of_the_target() -> None:
    assert micro_batch_default(CPU, 4096) == 32
    assert micro_batch_default(CPU, 64) == 8
    assert micro_batch_default(CPU, 3) == 1
    assert micro_batch_default(Place(torch.device("cuda"), None), 4096) == 128


def test_a_micro_batch_that_takes_too_long_is_halved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "_WISHED_SECONDS", 0.1)
    assert micro_batch_fit(16, lambda samples: time.sleep(0.015 * samples)) == 4
    assert micro_batch_fit(16, lambda samples: None) == 16


def test_a_micro_batch_that_does_not_fit_is_halved() -> None:
    def run(samples: int) -> None:
        if samples > 2:
            raise torch.OutOfMemoryError("too large")

    assert micro_batch_fit(16, run) == 2


def test_no_room_for_one_sample_is_told() -> None:
    def run(samples: int) -> None:
        raise MemoryError

    with pytest.raises(MemoryError, match="one sample"):
        micro_batch_fit(4, run)


def test_splitting_keeps_every_sample_in_order() -> None:
    batches = [{"x": torch.arange(0, 5), "y": torch.arange(10, 15)}, {"x": torch.arange(5, 10)}]
    split = list(batches_split(batches, 2))
    assert [len(batch["x"]) for batch in split] == [2, 2, 1, 2, 2, 1]
    assert torch.cat([batch["x"] for batch in split]).tolist() == list(range(10))
    assert torch.cat([batch["y"] for batch in split[:3]]).tolist() == list(range(10, 15))
