"""``beeyard evaluate``: measure a saved checkpoint; no site and no swarm are needed."""

import time
from pathlib import Path

from pydantic import ValidationError

from training.cli.arguments import Arguments
from training.cli.output import Output
from training.client.errors import ClientError, ExitCode
from training.protocol.config import RunConfig

_MODEL = "model.safetensors"


def evaluate(args: Arguments, out: Output) -> int:
    """Check the files against their manifest, ask the model, print figures and examples."""
    config = _config_read(Path(args.config))
    folder = Path(args.checkpoint)
    started = time.monotonic()
    epoch = _checkpoint_check(folder, config)
    from training.tasks.evaluation import model_load  # loads torch
    from training.tasks.registry import evaluation_get, task_get
    from training.tasks.task import TaskError
    from training.trainer.devices import place_choose

    try:
        place = place_choose(threads=args.threads)
        ask = evaluation_get(config.task.name)
        artifacts = Path(args.artifacts) if args.artifacts else folder
        model = task_get(config.task.name).model_build(config, artifacts)
        model_load(model, folder / _MODEL)
        result = ask(
            model.to(place.device),
            config,
            artifacts,
            samples=args.samples or config.evaluation.samples,
            device=place.device,
        )
    except TaskError as error:
        raise _usage(error.detail, error.remedy) from error
    seconds = time.monotonic() - started
    value = {"run": config.run, "lineage": config.lineage, "epoch": epoch, "seconds": seconds}
    lines = [f"Epoch {epoch} of {config.run}, {result.num_samples} samples, {seconds:.1f} s:"]
    lines += [f"  {name} {figure:.4f}" for name, figure in result.metrics.items()]
    for example in result.examples:
        said = ", ".join(f"{guess.guess} ({guess.hidden})" for guess in example.guesses)
        lines += [f"  {example.text}", f"    guesses (hidden): {said}"]
    out.result(value | result.as_dict(), lines)
    return int(ExitCode.FINE)


def _config_read(path: Path) -> RunConfig:
    try:
        return RunConfig.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        first = str(error).splitlines()[0]
        raise _usage(
            f"{path} is no run config ({first})", "Name a file with the config's body as JSON."
        ) from error


def _checkpoint_check(folder: Path, config: RunConfig) -> int:
    """Return the epoch of the checkpoint in ``folder``, whose files were found undamaged."""
    from training.coordinator.checkpoints import checkpoint_read

    _, _, number = folder.name.partition("-")
    try:
        return checkpoint_read(folder, config=config, epoch=int(number)).epoch
    except ValueError as error:
        raise _usage(
            f"the checkpoint {folder.name} cannot be used: {error}",
            "Name a folder <lineage>-<epoch> that the run's coordinator wrote.",
        ) from error


def _usage(detail: str, remedy: str) -> ClientError:
    return ClientError("evaluation_failed", detail, remedy, exit_code=ExitCode.USAGE)
