"""Commands without a site: ``version``, ``tasks``, ``tokenizer train``."""

import hashlib
from pathlib import Path

from training.cli.arguments import Arguments
from training.cli.output import Output
from training.client.errors import ClientError, ExitCode
from training.protocol.names import PROTOCOL_VERSION, TRAINER_VERSION


def version(args: Arguments, out: Output) -> int:
    """Print the version of this package and of the protocol."""
    value = {"version": TRAINER_VERSION, "protocol_version": PROTOCOL_VERSION}
    out.result(value, [f"beeyard {TRAINER_VERSION} (protocol {PROTOCOL_VERSION})"])
    return 0


def tasks(args: Arguments, out: Output) -> int:
    """List the task registry with the parameters that a run's config may set."""
    from training.tasks.registry import tasks_list  # loads torch

    value = [
        {
            "name": task.name,
            "summary": task.summary,
            "params_schema": task.params_model.model_json_schema(),
        }
        for task in tasks_list()
    ]
    out.result(value, [f"{task['name']}: {task['summary']}" for task in value])
    return 0


def tokenizer_train(args: Arguments, out: Output) -> int:
    """Train a tokenizer and print the hash by which a config names the file."""
    from training.tasks.albert import sources, tokenizer  # loads torch
    from training.tasks.task import TaskError

    path = Path(args.out)
    try:
        if args.source == "python-docs":
            documents = sources.python_docs()
        else:
            documents = sources.text_files([Path(args.source)])
        trained = tokenizer.tokenizer_train(
            (sentence for document in documents for sentence in document), args.vocab
        )
        tokenizer.tokenizer_write(trained, path)
    except TaskError as error:
        raise _usage(error.detail, error.remedy) from error
    except OSError as error:
        raise _usage(f"{path} cannot be written: {error.strerror}", "Name another file.") from error
    data = path.read_bytes()
    value = {
        "path": str(path),
        "sha256": hashlib.sha256(data).hexdigest(),
        "size": len(data),
        "pieces": trained.get_vocab_size(),
    }
    lines = [f"{path}: {value['pieces']} pieces, {value['size']} bytes, sha256 {value['sha256']}"]
    out.result(value, lines)
    return 0


def _usage(detail: str, remedy: str) -> ClientError:
    return ClientError("tokenizer_failed", detail, remedy, exit_code=ExitCode.USAGE)
