"""The weighted mean of what peers sent, of which no single one can make what it likes.

Centred clipping (Karimireddy et al. 2021; Gorbunov et al. 2022), with a radius that is learned
from the contributions themselves: as long as all of them lie about as far apart as most of them
do, the result is their plain weighted mean. Whoever lies further off is pulled in to the radius.

A mean over ``w`` samples scatters with ``1 / sqrt(w)``, so distances are compared after dividing
by what two honest peers of those weights would keep: a peer with few samples may be further off,
and one with many is not an outlier because it is alone.

Centres are kept as shares of the contributions: with all their scalar products at hand, no step
but the last touches the long vectors.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

_CENTRE_STEPS = 20
_PAIR_SHARE = 0.25
"""Of all pairs, at least this share is between honest peers while these are the majority."""
_VOTE_RATIO = 1.0
"""For finding the centre a peer counts as this many median peers at most."""
_ABSURD = 1e15
"""Norms above it are as bad as infinity: their squares are."""
_LIGHT_RATIO = 256.0
"""A peer that says it has fewer samples is granted the scatter of this part of the median."""


@dataclass(frozen=True)
class Limits:
    """What is plausible in one kind of averaging round."""

    max_weight: float
    """Larger weights are cut to it."""
    floor: float
    """Share of the median norm by which contributions may differ in any case."""
    reply_ratio: float
    """An average may differ from one's own values by this many times their size."""
    is_clipping: bool = True
    factor: float = 3.0
    """Times the learned distance: the radius."""
    pair_ratio: float = 10.0
    """In a group of two, the other's size is cut to this many times one's own."""
    are_samples: bool = True
    """Whether contributions scatter around the average, so that a few values of one may all be
    small by chance."""


@dataclass(frozen=True)
class Outcome:
    """An average and what had to be done for it; senders by their place in the input."""

    mean: Tensor
    left_out: set[int] = field(default_factory=set)
    """Not finite, or of the wrong shape."""
    clipped: set[int] = field(default_factory=set)
    cut_weights: set[int] = field(default_factory=set)
    radius: float = math.inf
    """The largest distance from the centre that anything was left at."""


def weight_plausible(weight: float, limits: Limits) -> float:
    """Return the weight a sender may have: 0 for nonsense, at most the limit."""
    if not math.isfinite(weight) or weight < 0:
        return 0.0
    return min(weight, limits.max_weight)


@torch.no_grad()
def robust_mean(
    parts: Sequence[Tensor],
    weights: Sequence[float],
    *,
    limits: Limits,
    own: int | None = None,
    own_size: float = 0.0,
) -> Outcome:
    """Return the weighted mean of equally shaped parts, outliers pulled in.

    Args:
        parts: what each sender sent.
        weights: samples behind each part, as its sender says.
        own: place of one's own part, when it is among them.
        own_size: root mean square of one's own values over all parts; 0: unknown.

    Without any finite part the mean is NaN: nobody can use it. When no sender has a weight, all
    count the same.
    """
    shape = parts[0 if own is None else own].shape
    plausible = [weight_plausible(weight, limits) for weight in weights]
    cut = {i for i, weight in enumerate(weights) if plausible[i] != weight}
    norms = [_norm(part) if part.shape == shape else math.nan for part in parts]
    left_out = {i for i, norm in enumerate(norms) if not norm <= _ABSURD}
    usable = [i for i in range(len(parts)) if i not in left_out]
    if not usable:
        return Outcome(torch.full(shape, math.nan), left_out, cut_weights=cut)
    if any(plausible[i] > 0 for i in usable):
        usable = [i for i in usable if plausible[i] > 0]
    weight = torch.tensor([plausible[i] or 1.0 for i in usable], dtype=torch.float64)
    size = torch.tensor([norms[i] for i in usable], dtype=torch.float64)
    shares, outside, radius = weight / weight.sum(), list[int](), math.inf
    rows = torch.stack([parts[i].reshape(-1) for i in usable]).float()
    base = None
    if limits.is_clipping and len(usable) > 2:
        # Differences to a part that is surely honest keep their digits.
        base = rows[usable.index(own)].clone() if own is not None and own in usable else None
        rows = rows if base is None else rows.sub_(base)
        shares, outside, radius = _clip(rows, weight, size, limits)
    elif limits.is_clipping and len(usable) == 2 and own in usable and own_size > 0:
        mine = usable.index(own)
        usual = float(size[mine]) + own_size * math.sqrt(shape.numel())
        few = math.sqrt(max(1.0, float(weight[mine] / weight[1 - mine])))
        radius = limits.pair_ratio * few * usual
        if float(size[1 - mine]) > radius:
            shares[1 - mine] *= radius / float(size[1 - mine])
            outside = [1 - mine]
    mean = shares.float() @ rows
    mean = (mean if base is None else mean.add_(base)).reshape(shape)
    return Outcome(mean, left_out, {usable[i] for i in outside}, cut, radius)


def _clip(
    rows: Tensor, weight: Tensor, size: Tensor, limits: Limits
) -> tuple[Tensor, list[int], float]:
    """Return each row's coefficient in the mean, the rows that were pulled in, and the radius."""
    products = (rows @ rows.T).double()
    square = products.diagonal()[:, None] + products.diagonal()[None, :] - 2 * products
    distance = square.clamp_min_(0).sqrt_()
    median = weight.median()
    variance = 1 / weight.clamp_min(float(median) / _LIGHT_RATIO)
    # Light peers claim a wide scatter: it is not learned from them.
    known = 1 / weight.clamp_min(float(median))
    one, other = torch.triu_indices(len(rows), len(rows), offset=1)
    scaled = (distance[one, other] / (known[one] + known[other]).sqrt()).sort().values
    factor = limits.factor * (1 + 9 / rows.shape[1] ** 0.75)
    # Short vectors scatter widely of themselves, long ones all lie at nearly one distance.
    reach = float(scaled[int(_PAIR_SHARE * len(scaled))]) * factor
    floor = limits.floor * float(size.median())

    def step(centre: Tensor, votes: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Move the centre to the mean of the votes, each no further off than its radius."""
        off = products.diagonal() - 2 * (products @ centre) + centre @ products @ centre
        spread = centre.square() * variance
        radius = reach * ((1 - centre).square() * variance + spread.sum() - spread).sqrt() + floor
        pull = radius / torch.maximum(off.clamp_min(0).sqrt(), radius).clamp_min(1e-300)
        pull = torch.where(radius > 0, pull, (off <= 0).double())
        part = votes * pull
        return centre * (1 - part.sum()) + part, pull, radius

    votes = weight.clamp_max(_VOTE_RATIO * float(median))
    centre = _middle(distance)
    for _ in range(_CENTRE_STEPS):
        moved, _, _ = step(centre, votes / votes.sum())
        is_still = bool((moved - centre).abs().max() < 1e-6)
        centre = moved
        if is_still:
            break
    result, pull, radius = step(centre, weight / weight.sum())
    if bool((pull == 1).all()):
        result = weight / weight.sum()
    outside = torch.nonzero(pull < 1).flatten().tolist()
    return result, outside, float(radius.max())


def _middle(distance: Tensor) -> Tensor:
    """Return the shares of a centre that is the row with the nearest neighbourhood."""
    count = len(distance)
    near = distance.sort(dim=1).values[:, 1 : 1 + max(1, count // 2)]
    order = sorted(range(count), key=lambda i: (float(near[i, -1]), float(near[i].sum())))
    centre = torch.zeros(count, dtype=torch.float64)
    centre[order[0]] = 1.0
    return centre


def _norm(part: Tensor) -> float:
    return float(torch.linalg.vector_norm(part.float()))
