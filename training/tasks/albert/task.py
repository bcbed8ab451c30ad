"""The ``albert`` task: transformers' AlbertForPreTraining on text."""

from collections.abc import Iterator
from pathlib import Path

import torch
from torch.nn.functional import cross_entropy
from transformers import AlbertConfig, AlbertForPreTraining

from training.protocol.config import RunConfig
from training.tasks.albert.params import AlbertParams
from training.tasks.albert.samples import IGNORED
from training.tasks.albert.text import text_read
from training.tasks.albert.tokenizer import PAD_ID
from training.tasks.task import Batch, params_read, seeded


class AlbertTask:
    """Masked words and sentence order, as in the ALBERT paper; sizes come from the config."""

    name = "albert"
    summary = "ALBERT pre-training on text: masked words and sentence order"
    params_model = AlbertParams

    def model_build(self, config: RunConfig, artifacts: Path) -> torch.nn.Module:
        params = params_read(AlbertParams, config)
        with seeded(config.seed):
            return AlbertForPreTraining(
                AlbertConfig(
                    vocab_size=params.vocab_size,
                    embedding_size=params.embedding_size,
                    hidden_size=params.hidden_size,
                    num_hidden_layers=params.layers,
                    num_hidden_groups=params.groups,
                    num_attention_heads=params.heads,
                    intermediate_size=params.intermediate_size,
                    max_position_embeddings=params.sequence_length,
                    hidden_dropout_prob=params.hidden_dropout,
                    attention_probs_dropout_prob=0.0,
                    classifier_dropout_prob=params.classifier_dropout,
                    pad_token_id=PAD_ID,
                )
            )

    def batches(
        self, config: RunConfig, artifacts: Path, *, seed: int, micro_batch: int
    ) -> Iterator[Batch]:
        text = text_read(config, artifacts, is_held_out=False)
        return text.batches(seed=seed, micro_batch=micro_batch)

    def loss(self, model: torch.nn.Module, batch: Batch) -> tuple[torch.Tensor, int]:
        assert isinstance(model, AlbertForPreTraining)  # noqa: S101 - the registry pairs them
        output = model.albert(
            input_ids=batch["input_ids"],
            attention_mask=batch["attention_mask"],
            token_type_ids=batch["token_type_ids"],
        )
        labels = batch["labels"]
        hidden = labels != IGNORED
        num_samples = labels.shape[0]
        # Only hidden tokens are guessed: the output layer is most of a small model's work.
        logits = model.predictions(output.last_hidden_state[hidden])
        losses = cross_entropy(logits.float(), labels[hidden], reduction="none")
        # The mean is taken within each sample first, so that the loss of many samples does not
        # depend on how they are spread over batches and peers.
        weights = (1.0 / hidden.sum(dim=1)).repeat_interleave(hidden.sum(dim=1))
        loss = (losses * weights).sum() / num_samples
        if "sentence_order_label" in batch:
            order = model.sop_classifier(output.pooler_output)
            loss = loss + cross_entropy(order.float(), batch["sentence_order_label"])
        return loss, num_samples
