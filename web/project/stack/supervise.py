"""The site's own processes, kept by supervisord: restarted when they die, stopped in order."""

import contextlib
import hashlib
import os
import signal
import subprocess
import sys
import tempfile
import xmlrpc.client
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path

from supervisor.xmlrpc import SupervisorTransport

from training.protocol.names import ENV_PROCESS

STOP_SECONDS = 40.0
_SOCKET_PATH_BYTES = 90
"""A socket's path is limited to about 100 bytes, a data folder's is not."""


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

[unix_http_server]
file={socket}
chmod=0700

[rpcinterface:supervisor]
supervisor.rpcinterface_factory = supervisor.rpcinterface:make_main_rpcinterface
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
        """Start supervisord, which starts the programs in the order of their priorities."""
        config = self._run / "supervisord.conf"
        config.write_text(self._text(programs))
        self._socket().parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with (self._logs / "supervisord.out").open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "supervisor.supervisord", "-c", str(config)],
                env=dict(environment) | {ENV_PROCESS: "supervisord"},
                cwd=self._directory,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def program_stop(self, name: str) -> None:
        """Stop one program for good and wait for its end."""
        self._tell("stopProcess", name, True)

    def shut_down(self) -> None:
        """Tell a supervisord that an earlier start left behind to stop all programs and end."""
        self._tell("shutdown")

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

    def _tell(self, method: str, *arguments: object) -> None:
        """Call supervisord; one that is gone, or has nothing to stop, is well."""
        if not self._socket().exists():
            return
        transport = SupervisorTransport(None, None, f"unix://{self._socket()}")
        gone = contextlib.suppress(OSError, HTTPException, xmlrpc.client.Error)
        # The host is not looked at: the transport speaks over the socket.
        with gone, xmlrpc.client.ServerProxy("http://127.0.0.1", transport=transport) as proxy:
            getattr(proxy.supervisor, method)(*arguments)

    def _text(self, programs: Sequence[Program]) -> str:
        parts = [HEAD.format(logs=self._logs, run=self._run, socket=self._socket())]
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
        path = self._run / "supervisor.sock"
        if len(os.fsencode(path)) < _SOCKET_PATH_BYTES:
            return path
        name = hashlib.sha256(os.fsencode(self._run)).hexdigest()[:16]
        return Path(tempfile.gettempdir()) / f"beeyard-{os.getuid()}-{name}" / "supervisor.sock"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
