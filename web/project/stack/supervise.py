"""The site's own processes, kept by supervisord: restarted when they die, stopped in order."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from training.protocol.names import ENV_PROCESS

STOP_SECONDS = 40.0


@dataclass(frozen=True)
class Program:
    """One process: lower priorities start earlier and stop later."""

    name: str
    command: Sequence[str]
    priority: int
    stop_seconds: int = 10
    environment: Mapping[str, str] = field(default_factory=dict)


HEAD = """[supervisord]
nodaemon=true
logfile={logs}/supervisord.log
logfile_maxbytes=2MB
logfile_backups=1
pidfile={run}/supervisord.pid
childlogdir={logs}
loglevel=info
silent=true
"""

PROGRAM = """
[program:{name}]
command={command}
directory={directory}
environment={environment}
priority={priority}
autostart=true
autorestart=true
startsecs=1
startretries=1000000
stopsignal=TERM
stopwaitsecs={stop_seconds}
stopasgroup=false
killasgroup=true
redirect_stderr=true
stdout_logfile={logs}/{name}.log
stdout_logfile_maxbytes=5MB
stdout_logfile_backups=2
"""


class Supervisor:
    """supervisord as a child in a session of its own: a Ctrl-C in the terminal is ours alone."""

    def __init__(self, *, run: Path, logs: Path, directory: Path) -> None:
        self._run, self._logs, self._directory = run, logs, directory
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, programs: Sequence[Program], environment: Mapping[str, str]) -> None:
        config = self._run / "supervisord.conf"
        config.write_text(self._text(programs))
        command = [sys.executable, "-m", "supervisor.supervisord", "-c", str(config)]
        self._process = subprocess.Popen(
            command,
            env=dict(environment) | {ENV_PROCESS: "supervisord"},
            cwd=self._directory,
            stdin=subprocess.DEVNULL,
            stdout=(self._logs / "supervisord.out").open("ab"),
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def program_stop(self, name: str) -> None:
        """Stop one program for good (used before managed workers are stopped)."""
        self._control("stop", name)

    def stop(self) -> None:
        """Stop all programs in order and wait."""
        if self._process is None or self._process.poll() is not None:
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def _control(self, *words: str) -> None:
        command = [sys.executable, "-m", "supervisor.supervisorctl"]
        subprocess.run(
            [*command, "-c", str(self._run / "supervisord.conf"), *words],
            capture_output=True,
            timeout=STOP_SECONDS,
            check=False,
        )

    def _text(self, programs: Sequence[Program]) -> str:
        socket = self._socket()
        parts = [
            HEAD.format(logs=self._logs, run=self._run),
            f"\n[unix_http_server]\nfile={socket}\nchmod=0700\n"
            f"\n[supervisorctl]\nserverurl=unix://{socket}\n"
            "\n[rpcinterface:supervisor]\nsupervisor.rpcinterface_factory = "
            "supervisor.rpcinterface:make_main_rpcinterface\n",
        ]
        for program in programs:
            marks = {ENV_PROCESS: program.name} | dict(program.environment)
            parts.append(
                PROGRAM.format(
                    name=program.name,
                    command=" ".join(_quoted(word) for word in program.command),
                    directory=self._directory,
                    environment=",".join(f"{k}={_quoted(v)}" for k, v in marks.items()),
                    priority=program.priority,
                    stop_seconds=program.stop_seconds,
                    logs=self._logs,
                )
            )
        return "".join(parts).replace("%", "%%")

    def _socket(self) -> Path:
        """A socket's path is limited to about 100 bytes, a data folder's is not."""
        path = self._run / "supervisor.sock"
        if len(str(path)) < 90:
            return path
        return Path("/tmp") / f"beeyard-{os.getuid()}-{os.getpid()}-{int(time.time())}.sock"  # noqa: S108


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
