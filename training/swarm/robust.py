"""An all-reduce that looks at what it is given: by senders, and by those who average for us.

hivemind adds up whatever comes and takes over whatever comes back. Here each part is averaged by
:func:`robust_mean`, and an average that comes back is taken over only when it is finite and not
absurdly far from one's own values; otherwise one's own stay. What goes over the wire is
hivemind's, so guarded and other peers average together.

hivemind makes its runner by the name ``AllReduceRunner`` in its averager module, from the
keyword arguments of ``_run_allreduce_inplace_``: our averagers' module replaces that name by
:func:`runner_make`, which takes a ``guard`` and without one makes hivemind's own.
"""

import asyncio
import math
from collections.abc import Sequence
from typing import Any

import torch
from hivemind.averaging.allreduce import AllReduceRunner
from hivemind.averaging.partition import (
    AllreduceException,
    BannedException,
    TensorPartContainer,
    TensorPartReducer,
)
from hivemind.p2p import PeerID
from torch import Tensor

from training.swarm.clipping import Limits, robust_mean
from training.swarm.findings import Findings, RoundGuard

_CONTAINER_OPTIONS = ("compression", "part_size_bytes", "tensor_infos")
_SHORT_PART = 64
_OPPOSITE = 0.25
"""One's own values are in the average: their cosine is above zero, but for chance in short parts.
An average whose cosine is below minus this has been turned round."""


class GuardedReducer(TensorPartReducer):
    """Keeps the contributions to a part until all are there, then averages them robustly."""

    def __init__(
        self,
        part_shapes: Sequence[torch.Size],
        senders: Sequence[PeerID],
        *,
        limits: Limits,
        findings: Findings,
        own: int | None,
        own_size: float,
    ) -> None:
        self._senders, self._limits, self._findings = senders, limits, findings
        self._own, self._own_size = own, own_size
        self._held: dict[int, tuple[Tensor, float]] = {}
        super().__init__(part_shapes, len(senders))

    async def accumulate_part(
        self, sender_index: int, part_index: int, tensor_part: Tensor, weight: float = 1.0
    ) -> Tensor:
        """Hold a sender's part; return the average once every sender's is there.

        Raises:
            AllreduceException: the round has ended.
            BannedException: the sender was given up meanwhile.
        """
        if part_index != self.num_parts_received[sender_index] or part_index >= self.num_parts:
            # In a second stream, say: hivemind would count one sender in place of another.
            raise AllreduceException(f"sender {sender_index} sent part {part_index} out of turn")
        if tensor_part.shape != self.part_shapes[part_index]:
            # Not left out later: hivemind subtracts it from the average, and a column from a row
            # is a matrix that no memory holds.
            self._findings.add(self._findings.left_out, self._senders[sender_index])
            raise AllreduceException(f"sender {sender_index} sent a part of another shape")
        self.num_parts_received[sender_index] += 1
        while part_index > self.current_part_index:
            ended = asyncio.create_task(self.finished.wait())
            await asyncio.wait(
                {self.current_part_future, ended}, return_when=asyncio.FIRST_COMPLETED
            )
            ended.cancel()
            if self.finished.is_set():
                raise AllreduceException("the round has ended")
        if self.sender_failed_after[sender_index] != math.inf:
            raise BannedException(f"sender {sender_index} was given up")
        average = self.current_part_future
        self._held[sender_index] = (tensor_part, float(weight))
        self.current_part_accumulated_from += 1
        self.check_current_part_finished()
        return await average

    def check_current_part_finished(self) -> None:
        if self.current_part_accumulated_from < self.num_current_senders:
            return
        average, held = self.current_part_future, self._held
        self._held = {}
        if not average.done():
            try:
                average.set_result(self._average(held))
            except Exception as error:  # noqa: BLE001 - all senders wait for it: none for ever
                average.set_exception(error)
        self.reset_accumulators()

    def _average(self, held: dict[int, tuple[Tensor, float]]) -> Tensor:
        if not held:
            return torch.full(self.part_shapes[self.current_part_index], math.nan)
        order = sorted(held)
        outcome = robust_mean(
            [held[sender][0] for sender in order],
            [held[sender][1] for sender in order],
            limits=self._limits,
            own=order.index(self._own) if self._own in held else None,
            own_size=self._own_size,
        )
        found = self._findings
        for kind, places in (
            (found.left_out, outcome.left_out),
            (found.clipped, outcome.clipped),
            (found.cut_weights, outcome.cut_weights),
        ):
            for place in places:
                found.add(kind, self._senders[order[place]])
        return outcome.mean


class GuardedContainer(TensorPartContainer):
    """Takes over only such averages as can be true."""

    def __init__(
        self,
        *args: Any,
        limits: Limits,
        findings: Findings,
        peers: Sequence[PeerID],
        own_size: float,
        **kwargs: Any,
    ) -> None:
        self._limits, self._findings, self._peers = limits, findings, peers
        self._own_size = own_size
        super().__init__(*args, **kwargs)

    @torch.no_grad()
    def register_processed_part(self, peer_index: int, part_index: int, part: Tensor) -> None:
        """Register what is to be added to one's own values: nothing, if it is not plausible."""
        own = self._input_parts_by_peer[peer_index][part_index][0]
        if not self._is_plausible(part, own):
            self._findings.add(self._findings.refused, self._peers[peer_index])
            self.failed_size += own.numel()
            part = torch.zeros_like(own)
        super().register_processed_part(peer_index, part_index, part)

    def _is_plausible(self, change: Tensor, own: Tensor) -> bool:
        if change.shape != own.shape:
            return False
        change, own = change.float().flatten(), own.float().flatten()
        norm, own_norm = (float(torch.linalg.vector_norm(values)) for values in (change, own))
        if not math.isfinite(norm):
            return False
        if not self._own_size:
            return True  # nothing of one's own to compare with
        if norm > self._most(own_norm, own.numel()):
            return False
        least = -max(_OPPOSITE, 5 / math.sqrt(own.numel()))
        along = float(own @ change) + own_norm**2
        return along >= least * own_norm * float(torch.linalg.vector_norm(own + change))

    def _most(self, own_norm: float, count: int) -> float:
        """Return how far a part's average may be from one's own values."""
        if self._limits.are_samples and count < _SHORT_PART:
            return own_norm + self._own_size * math.sqrt(self.total_size)
        return self._limits.reply_ratio * (own_norm + self._own_size * math.sqrt(count))


class GuardedAllReduce(AllReduceRunner):
    """hivemind's round with a guarded reducer and a guarded container."""

    tensor_part_container: TensorPartContainer
    tensor_part_reducer: TensorPartReducer

    def __init__(
        self,
        *,
        guard: RoundGuard,
        tensors: Sequence[Tensor],
        peer_fractions: tuple[float, ...],
        **kwargs: Any,
    ) -> None:
        super().__init__(tensors=tensors, peer_fractions=peer_fractions, **kwargs)
        self._guard, self._findings = guard, Findings()
        self._is_told = False
        place = self.ordered_peer_ids.index(self.peer_id)
        is_sender = self.peer_id in self.sender_peer_ids and self.weight > 0
        own_size = root_mean_square(tensors) if is_sender else 0.0
        self.tensor_part_container.finalize()
        self.tensor_part_container = GuardedContainer(
            tensors,
            peer_fractions,
            return_deltas=True,
            limits=guard.limits,
            findings=self._findings,
            peers=self.ordered_peer_ids,
            own_size=own_size,
            **{name: kwargs[name] for name in _CONTAINER_OPTIONS if name in kwargs},
        )
        self.parts_for_local_averaging = self.tensor_part_container.get_raw_input_parts(place)
        self.tensor_part_reducer.finished.set()  # the plain one ends without a word
        self.tensor_part_reducer = GuardedReducer(
            tuple(part.shape for part in self.parts_for_local_averaging),
            self.sender_peer_ids,
            limits=guard.limits,
            findings=self._findings,
            own=self.sender_peer_ids.index(self.peer_id) if is_sender else None,
            own_size=own_size,
        )

    def finalize(self, **kwargs: Any) -> None:
        """End the round, and tell once what stood out."""
        super().finalize(**kwargs)
        if not self._is_told:
            self._is_told = True
            self._findings.tell(self._prefix)
            self._guard.note(self._findings)


@torch.no_grad()
def root_mean_square(tensors: Sequence[Tensor]) -> float:
    """Return the size of a typical value; 0 when there is none or it is not finite."""
    count = sum(tensor.numel() for tensor in tensors)
    if not count:
        return 0.0
    norms = torch.stack(torch._foreach_norm(list(tensors))).double()
    size = float(norms.norm()) / math.sqrt(count)
    return size if math.isfinite(size) else 0.0


def runner_make(*, guard: RoundGuard | None = None, **kwargs: Any) -> AllReduceRunner:
    """Return one round's runner: guarded if there is a guard."""
    if guard is None:
        return AllReduceRunner(**kwargs)
    return GuardedAllReduce(guard=guard, **kwargs)
