"""Optimizer and schedule of a run, in the forms that averaging needs: factories."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.optim import SGD, Optimizer
from torch.optim.lr_scheduler import LambdaLR

from training.protocol.config import OptimizerConfig

ParamGroups = list[dict[str, Any]]
OptimizerFactory = Callable[[Iterable[Any]], Optimizer]
SchedulerFactory = Callable[[Optimizer], LambdaLR]


def optimizer_build(
    config: OptimizerConfig, model: torch.nn.Module
) -> tuple[ParamGroups, OptimizerFactory]:
    """Return the model's parameter groups and what makes an optimizer of (copies of) them.

    Biases and normalisation layers are not decayed. All state tensors exist from the start, as
    they must before state can be exchanged, and making them changes no parameter.
    """
    return param_groups(config, model), lambda params: _optimizer(config, params)


def scheduler_build(config: OptimizerConfig) -> SchedulerFactory:
    """Return what makes the learning-rate schedule; it counts global epochs."""

    def build(optimizer: Optimizer) -> LambdaLR:
        # A peer that downloads a state moves its schedule before its first own step: fine here.
        optimizer._opt_called = True  # type: ignore[attr-defined]
        return LambdaLR(optimizer, lambda epoch: learning_rate_share(config, epoch))

    return build


def learning_rate_share(config: OptimizerConfig, epoch: int) -> float:
    """Return the learning rate of an epoch as a share of the peak.

    Linear warm-up, then linear decay that ends at ``min_learning_rate_ratio`` in
    ``total_epochs``. The first epoch of a warm-up learns already.
    """
    if epoch < config.warmup_epochs:
        return (epoch + 1) / (config.warmup_epochs + 1)
    span = max(1, config.total_epochs - config.warmup_epochs)
    left = 1.0 - (epoch - config.warmup_epochs) / span
    return max(config.min_learning_rate_ratio, left, 0.0)


def param_groups(config: OptimizerConfig, model: torch.nn.Module) -> ParamGroups:
    """Return all trainable parameters, decayed ones first; the order is part of the swarm."""
    decayed: list[torch.nn.Parameter] = []
    plain: list[torch.nn.Parameter] = []
    normalisation = {
        id(parameter)
        for module in model.modules()
        if isinstance(module, torch.nn.LayerNorm)
        for parameter in module.parameters()
    }
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            is_plain = name.endswith("bias") or id(parameter) in normalisation
            (plain if is_plain else decayed).append(parameter)
    groups: ParamGroups = [
        {"params": decayed, "weight_decay": config.weight_decay},
        {"params": plain, "weight_decay": 0.0},
    ]
    return [group for group in groups if group["params"]]


def _optimizer(config: OptimizerConfig, params: Iterable[Any]) -> Optimizer:
    if config.name == "sgd":
        return SGD(params, lr=config.learning_rate)
    from pytorch_optimizer import Lamb  # seconds of imports, for runs that want it

    optimizer = Lamb(
        params,
        lr=config.learning_rate,
        betas=(config.beta1, config.beta2),
        eps=config.epsilon,
        weight_decay=config.weight_decay,
        max_grad_norm=config.max_grad_norm,
        pre_norm=True,
    )
    _lamb_fill_state(optimizer)
    return optimizer


def _lamb_fill_state(optimizer: Optimizer) -> None:
    # A step with zero gradients and zero learning rate makes every state tensor, moves nothing.
    rates = [group["lr"] for group in optimizer.param_groups]
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    gradients = [parameter.grad for parameter in parameters]
    for group in optimizer.param_groups:
        group["lr"] = 0.0
    for parameter in parameters:
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    for parameter, gradient in zip(parameters, gradients, strict=True):
        parameter.grad = gradient
    for group, rate in zip(optimizer.param_groups, rates, strict=True):
        group["lr"], group["step"] = rate, 0
