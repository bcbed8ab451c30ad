"""The progress display in a terminal."""

from collections.abc import Callable
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

from training.cli.output import Output
from training.trainer.session import TrainerStats


class LiveFace:
    """A bar that fills toward the target batch size; events scroll by above it."""

    def __init__(self, out: Output, console: Console | None = None) -> None:
        self._out = out
        self._console = console or Console()
        self._bar = Progress(
            SpinnerColumn(),
            TextColumn("{task.fields[phase]}", markup=False),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[numbers]}", markup=False),
            console=self._console,
            auto_refresh=False,
            # Others' writes must reach the terminal by themselves: hivemind forks this process.
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._task = self._bar.add_task("", total=None, phase="", numbers="")
        self._writer_before: Callable[[str], None] | None = None

    def __enter__(self) -> Self:
        self._writer_before, self._out.writer = self._out.writer, self.say
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._bar.stop()
        self._out.writer = self._writer_before

    def say(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False, emoji=False)

    def draw(self, phase: str, stats: TrainerStats | None) -> None:
        if stats is None:
            self._bar.update(self._task, phase=phase)
        else:
            self._bar.update(
                self._task,
                phase=f"epoch {stats.epoch} {stats.phase}",
                total=stats.target_batch_size,
                completed=min(stats.samples_epoch, stats.target_batch_size),
                numbers=_numbers(stats),
            )
        self._bar.refresh()


def _numbers(stats: TrainerStats) -> str:
    loss = "" if stats.loss is None else f"  loss {stats.loss:.3f}"
    return (
        f"{stats.samples_epoch:,}/{stats.target_batch_size:,}  "
        f"{stats.samples_per_second:.1f}/s{loss}  {stats.num_peers} trainers  "
        f"yours {stats.samples_total:,}"
    )
