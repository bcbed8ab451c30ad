"""What a record may look like before it is stored: pydantic.v1 models, as hivemind wants them.

A metrics record has the five fields of hivemind's own example trainer, so that stock peers and
stock monitors can be read beside ours, and one more: ``jws``, the device-signed metrics. Two
schemas stand side by side because hivemind accepts no value that its model would change, not
even by filling in a missing ``jws``.
"""

from collections.abc import Sequence

from hivemind.dht.schema import BytesWithPublicKey, RSASignatureValidator, SchemaValidator
from hivemind.dht.validation import RecordValidatorBase
from hivemind.optim.progress_tracker import TrainingProgressSchema
from pydantic.v1 import BaseModel, confloat, conint, constr

from training.client.swarm_key import SwarmKey
from training.swarm.identity import rsa_key

_FINITE = confloat(strict=True, allow_inf_nan=False)
_COUNT = conint(strict=True, ge=0)
_RATE = confloat(strict=True, ge=0.0, allow_inf_nan=False)


class StockMetrics(BaseModel):
    """The record of hivemind's example trainer. ``loss`` is a sum over ``mini_steps``."""

    step: _COUNT
    samples_per_second: _RATE
    samples_accumulated: _COUNT
    loss: _FINITE
    mini_steps: _COUNT


class SignedMetrics(StockMetrics):
    jws: constr(strict=True, max_length=16_384)  # type: ignore[valid-type]


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
