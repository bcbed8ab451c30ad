"""The demo run's config and tokenizer, for tests that train the real thing."""

import hashlib
from functools import cache
from pathlib import Path

from training.protocol.config import (
    Artifact,
    OptimizerConfig,
    RunConfig,
    SwarmConfig,
    TaskConfig,
)
from training.tasks.albert.sources import python_docs
from training.tasks.albert.tokenizer import tokenizer_train

VOCAB_SIZE = 8192
TASK = TaskConfig(
    name="albert",
    params={
        "hidden_size": 128,
        "embedding_size": 128,
        "layers": 4,
        "groups": 1,
        "heads": 4,
        "intermediate_size": 512,
        "vocab_size": VOCAB_SIZE,
        "sequence_length": 64,
        "source": "python-docs",
        "tokenizer": "tokenizer.json",
    },
)
OPTIMIZER = OptimizerConfig(
    learning_rate=0.015, warmup_epochs=5, total_epochs=5000, min_learning_rate_ratio=0.1
)
SWARM = SwarmConfig(
    target_batch_size=4096,
    matchmaking_seconds=3.0,
    request_timeout_seconds=1.0,
    averaging_timeout_seconds=30.0,
    load_state_timeout_seconds=60.0,
    average_state_every=5,
)


@cache
def tokenizer_json() -> str:
    """Return the demo's tokenizer, trained on the demo's text."""
    texts = (sentence for document in python_docs() for sentence in document)
    return tokenizer_train(texts, VOCAB_SIZE).to_str()


def demo_config(folder: Path) -> RunConfig:
    """Return the demo's config, with its tokenizer written into ``folder``."""
    data = tokenizer_json().encode()
    (folder / "tokenizer.json").write_bytes(data)
    digest = hashlib.sha256(data).hexdigest()
    return RunConfig(
        run="python-docs",
        title="Python documentation",
        version=1,
        task=TASK,
        artifacts=(Artifact(name="tokenizer.json", sha256=digest, size=len(data)),),
        optimizer=OPTIMIZER,
        swarm=SWARM,
    )
