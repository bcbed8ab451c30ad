"""Without a terminal there are plain lines; a reader that went away holds nothing up."""

import io

import pytest

from web.project.stack.terminal import PlainTerminal, terminal_open


def test_a_pipe_gets_plain_lines(capsys: pytest.CaptureFixture[str]) -> None:
    with terminal_open() as terminal:
        terminal.tell("The site is at [http://127.0.0.1:8000]")
        terminal.status("epoch 1: half done")
    out = capsys.readouterr().out
    assert out.endswith("s  The site is at [http://127.0.0.1:8000]\n")
    assert "\x1b" not in out
    assert "half done" not in out


def test_a_reader_that_went_away_holds_nothing_up(monkeypatch: pytest.MonkeyPatch) -> None:
    class Closed(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    monkeypatch.setattr("sys.stdout", Closed())
    PlainTerminal().tell("nobody hears this")
