"""Whether the swarm's entrances can be dialled from here."""

import socket
from concurrent.futures import ThreadPoolExecutor

from training.client.preflight import CheckResult

_DIAL_SECONDS = 5.0
_HOST_KINDS = ("ip4", "ip6", "dns", "dns4", "dns6")


def bootstrap_check(multiaddrs: tuple[str, ...]) -> CheckResult:
    """Dial each address by TCP and return whether at least one answers, naming the dead ones.

    The site cannot tell a dead entrance from a closed firewall here, hence both remedies.
    """
    targets = dict.fromkeys(t for t in map(tcp_target, multiaddrs) if t is not None)
    if not targets:
        return CheckResult(
            "bootstrap",
            False,
            "error",
            "the run has no peer to enter by yet",
            "Its coordinator may be starting; this is not your fault. Try again in a minute.",
        )
    with ThreadPoolExecutor(max_workers=min(8, len(targets))) as pool:
        answers = dict(zip(targets, pool.map(_dial, targets), strict=True))
    dead = [f"{host}:{port} ({why})" for (host, port), why in answers.items() if why]
    alive = len(targets) - len(dead)
    text = f"{alive} of {len(targets)} entrances of the swarm answer"
    if dead:
        text += f"; not {', '.join(dead)}"
    remedy = (
        "If other sites work, the swarm's peers are away: try again in a minute. Otherwise a "
        "firewall here may close these ports for outgoing connections."
    )
    return CheckResult("bootstrap", alive > 0, "error", text, "" if alive else remedy)


def tcp_target(multiaddr: str) -> tuple[str, int] | None:
    """Return host and port of a multiaddress such as ``/ip4/1.2.3.4/tcp/5/p2p/Qm…``.

    None for circuits and anything that is not TCP: those are not dialled here.
    """
    parts = multiaddr.strip("/").split("/")
    if len(parts) < 4 or parts[0] not in _HOST_KINDS or parts[2] != "tcp":
        return None
    if "p2p-circuit" in parts or not parts[3].isdigit() or not 0 < int(parts[3]) < 65536:
        return None
    return parts[1], int(parts[3])


def _dial(target: tuple[str, int]) -> str:
    """Return why ``target`` does not answer, '' when it does."""
    try:
        socket.create_connection(target, timeout=_DIAL_SECONDS).close()
    except TimeoutError:
        return "no answer"
    except OSError as error:
        return (error.strerror or str(error)).lower()
    return ""
