"""The commands and options of ``beeyard``."""

import argparse

from training.protocol.names import ENV_HOME, ENV_TOKEN

_EXIT_CODES = (
    "exit codes: 0 fine, 1 unforeseen, 2 usage, 3 not allowed, 4 unreachable, "
    "5 bad signature, 6 hardware, 7 run over"
)


class Arguments(argparse.Namespace):
    """All options of all commands, with the values that commands without them see."""

    command: str
    json: bool = False
    home: str | None = None
    url: str | None = None
    name: str = ""
    token_file: str | None = None
    client_mode: bool = False
    role: str = "trainer"
    port: int | None = None
    bind: str | None = None
    threads: int | None = None
    micro_batch: int | None = None
    plain: bool = False
    once: bool = False
    checkpoints: str = ""
    new_key: bool = False
    file: str = ""
    source: str = "python-docs"
    vocab: int = 4096
    out: str = ""
    config: str = ""
    checkpoint: str = ""
    artifacts: str = ""
    samples: int | None = None


def parser_build() -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    parser = argparse.ArgumentParser(
        prog="beeyard",
        description="Join an open collaborative training run with your own machine.",
        epilog=_EXIT_CODES,
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    _join(commands)
    _coordinator(commands)
    _small(commands)
    _tokenizer(commands)
    _evaluate(commands)
    return parser


def _add(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
    name: str,
    target: str,
    summary: str,
) -> argparse.ArgumentParser:
    command = commands.add_parser(name, help=summary, description=summary, epilog=_EXIT_CODES)
    command.set_defaults(command=target)
    command.add_argument("--json", action="store_true", help="machine-readable output")
    command.add_argument(
        "--home", metavar="DIR", help=f"keys and logins (default: ${ENV_HOME} or ~/.beeyard)"
    )
    return command


def _network(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--token-file", metavar="FILE", help=f"file with a token (or set ${ENV_TOKEN})"
    )
    command.add_argument("--port", type=_port, help="TCP port for other peers (default: any)")
    command.add_argument("--bind", metavar="ADDR", help="address on which to listen")


def _join(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    join = _add(commands, "join", "join:join", "train in a run until stopped")
    join.add_argument("url", metavar="URL", help="address of the run's page")
    _network(join)
    join.add_argument("--name", default="", help="name of this device (default: host name)")
    join.add_argument(
        "--client-mode", action="store_true", help="accept no connections from other peers"
    )
    join.add_argument(
        "--role",
        choices=("trainer", "auxiliary"),
        default="trainer",
        help="auxiliary: compute nothing, only help others to average",
    )
    join.add_argument("--threads", type=_positive, metavar="N", help="CPU threads to use")
    join.add_argument("--micro-batch", type=_positive, metavar="N", help="samples per micro-step")
    join.add_argument("--plain", action="store_true", help="plain lines, no progress display")
    join.add_argument("--once", action="store_true", help="end instead of joining again")


def _coordinator(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    command = _add(commands, "coordinator", "coordinator:coordinator", "coordinate a run's swarm")
    command.add_argument("url", metavar="URL", help="address of the run's page")
    _network(command)
    command.add_argument(
        "--checkpoints", metavar="DIR", required=True, help="folder of the run's checkpoints"
    )


def _small(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    doctor = _add(commands, "doctor", "doctor:doctor", "check this machine, and a site")
    doctor.add_argument("url", metavar="URL", nargs="?", help="a site or a run's page")
    _add(commands, "status", "status:status", "show what runs on this machine")
    why = _add(commands, "why", "site:why", "explain why work was or was not counted")
    why.add_argument("url", metavar="URL", help="address of the run's page")
    why.add_argument("--token-file", metavar="FILE", help="file with a token")
    verify = _add(commands, "verify", "verify:verify", "check a signed file against pinned keys")
    verify.add_argument("file", metavar="FILE", help="a config, pass, receipt, … (- for stdin)")
    logout = _add(commands, "logout", "site:logout", "end this machine's login")
    logout.add_argument("url", metavar="URL", nargs="?", help="a site (default: all)")
    logout.add_argument(
        "--new-key",
        action="store_true",
        help="also delete this machine's keys (a new pair is made by the next join)",
    )
    _add(commands, "version", "tasks:version", "print the version")
    _add(commands, "tasks", "tasks:tasks", "list what can be trained")


def _tokenizer(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parent = commands.add_parser("tokenizer", help="make tokenizers")
    train = _add(
        parent.add_subparsers(metavar="ACTION", required=True),
        "train",
        "tasks:tokenizer_train",
        "train a tokenizer and write it to a file",
    )
    train.add_argument(
        "--source", default="python-docs", help="python-docs, or a .txt or .jsonl file"
    )
    train.add_argument("--vocab", type=_positive, default=4096, metavar="N", help="pieces")
    train.add_argument("--out", required=True, metavar="FILE", help="tokenizer.json to write")


def _evaluate(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    command = _add(commands, "evaluate", "evaluate:evaluate", "measure a saved checkpoint")
    command.add_argument("--config", metavar="FILE", required=True, help="the config's body, JSON")
    command.add_argument(
        "--checkpoint", metavar="DIR", required=True, help="folder with the files and manifest.jws"
    )
    command.add_argument("--artifacts", metavar="DIR", default="", help="the config's files")
    command.add_argument("--samples", type=_positive, metavar="N", help="default: the config's")
    command.add_argument("--threads", type=_positive, metavar="N", help="CPU threads to use")


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("must be 1 or more")
    return value


def _port(text: str) -> int:
    value = int(text)
    if not 1 <= value <= 65535:
        raise argparse.ArgumentTypeError("must be between 1 and 65535")
    return value
