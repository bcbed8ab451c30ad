"""What a record may look like before it is stored: pydantic.v1 models, as hivemind wants them.

A metrics record has the five fields of hivemind's own example trainer, so that stock peers and
stock monitors can be read beside ours, and one more: ``jws``, the device-signed metrics. Two
schemas stand side by side because hivemind accepts no value that its model would change, not
even by filling in a missing ``jws``.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hivemind.dht.schema import BytesWithPublicKey, RSASignatureValidator, SchemaValidator
from hivemind.dht.validation import RecordValidatorBase
from hivemind.optim.progress_tracker import TrainingProgressSchema
from pydantic.v1 import BaseModel, confloat, conint, constr

from training.client.swarm_key import SwarmKey
from training.protocol.base import MAX_COUNT, MAX_EPOCH, MAX_RATE
from training.swarm.identity import rsa_key

if TYPE_CHECKING:
    Finite = float
    Rate = float
    Epoch = int
    Count = int
    Token = str
else:
    Finite = confloat(strict=True, ge=-1e18, le=1e18)
    Rate = confloat(strict=True, ge=0.0, le=MAX_RATE)
    Epoch = conint(strict=True, ge=0, le=MAX_EPOCH)
    Count = conint(strict=True, ge=0, le=MAX_COUNT)
    Token = constr(strict=True, max_length=16_384)


class StockMetrics(BaseModel):
    """The record of hivemind's example trainer. ``loss`` is a sum over ``mini_steps``."""

    step: Epoch
    samples_per_second: Rate
    samples_accumulated: Count
    loss: Finite
    mini_steps: Count


class SignedMetrics(StockMetrics):
    jws: Token


class StockMetricsSchema(BaseModel):
    metrics: dict[BytesWithPublicKey, StockMetrics]


class SignedMetricsSchema(BaseModel):
    metrics: dict[BytesWithPublicKey, SignedMetrics]


def validators(key: SwarmKey, run_id: str) -> Sequence[RecordValidatorBase]:
    """Return the record validators of every peer of a run.

    The signature validator must be there before the first read: without it a read of signed
    records never returns (hivemind 1.1.12).
    """
    return [
        SchemaValidator(StockMetricsSchema, prefix=run_id),
        SchemaValidator(SignedMetricsSchema, prefix=run_id),
        SchemaValidator(TrainingProgressSchema, prefix=run_id),
        RSASignatureValidator(rsa_key(key)),
    ]
