"""A peer of the DHT: start, stop, and the metrics records of a run. No wait is without bound."""

import ipaddress
import socket
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any

from hivemind import DHT
from hivemind.p2p.p2p_daemon_bindings.control import P2PDaemonError
from hivemind.utils.timed_storage import ValueWithExpiration

from training.client.gate import Gate
from training.client.swarm_key import SwarmKey
from training.protocol.keys import key_thumbprint
from training.protocol.metrics import PeerMetrics
from training.protocol.names import metrics_key
from training.swarm.admission import admission_serve
from training.swarm.authorizer import PassAuthorizer
from training.swarm.clock import swarm_clock_set, swarm_time
from training.swarm.gate_records import GateValidator
from training.swarm.gatekeeper import Gatekeeper
from training.swarm.identity import owner_public_der, owner_subkey
from training.swarm.nesting import nesting_bound
from training.swarm.pipe import SharedPipe
from training.swarm.processes import children_guard, swarm_log_quiet
from training.swarm.recorder import ProgressRecorder, progress_node_id
from training.swarm.records import MetricsNumbers, MetricsRecord
from training.swarm.relay import relay_off
from training.swarm.schema import SignedMetrics, StockMetrics, validators

STARTUP_SECONDS = 60.0
"""Slow disks and busy machines need far more than hivemind's 15 s for p2pd."""
_STOP_SECONDS = 1.5


class SwarmError(Exception):
    """The swarm cannot be entered; ``remedy`` says what to do."""

    def __init__(self, detail: str, remedy: str, *, may_be_refusal: bool = False) -> None:
        """``may_be_refusal``: peers that refuse us look like peers that are not there."""
        super().__init__(detail)
        self.detail = detail
        self.remedy = remedy
        self.may_be_refusal = may_be_refusal


class PeerDHT(DHT):
    """hivemind's DHT peer with the gate and the pipe that its averagers share."""

    _outer_pipe: Any

    def __init__(self, *, run_id: str, gatekeeper: Gatekeeper | None, **options: Any) -> None:
        """``gatekeeper``: None in a run that is open to all."""
        self.run_id, self.gatekeeper = run_id, gatekeeper
        super().__init__(**options)
        self._outer_pipe = SharedPipe(self._outer_pipe)


def dht_start(
    *,
    key: SwarmKey,
    run_id: str,
    initial_peers: Sequence[str],
    bind: str,
    port: int,
    client_mode: bool,
    announce: Sequence[str] = (),
    recorder: ProgressRecorder | None = None,
    gate: Gate | None = None,
) -> PeerDHT:
    """Start a DHT peer in a forked process; call this from the main thread.

    Args:
        port: TCP port; 0 lets the system choose one.
        announce: multiaddresses to tell others instead of the ones listened on.
        recorder: is sent all progress records; one peer of a swarm has it, or a few.
        gate: demands a pass on every call; None lets anybody in.

    Raises:
        SwarmError: the port is taken, no bootstrap peer answered, or p2pd did not start.
    """
    _process_prepare()
    _check_port_free(bind, port)
    gatekeeper = None if gate is None else Gatekeeper(gate)
    checks = list(validators(key, run_id))
    options: dict[str, Any] = {"announce_maddrs": list(announce)} if announce else {}
    if recorder is not None:
        checks.append(recorder)
        options["node_id"] = progress_node_id(run_id)
    if gatekeeper is not None:
        checks.append(GateValidator(run_id, gatekeeper))
        options["authorizer"] = PassAuthorizer(key, gatekeeper)
    address = ipaddress.ip_address(bind)
    dht = PeerDHT(
        run_id=run_id,
        gatekeeper=gatekeeper,
        initial_peers=list(initial_peers) or None,
        start=False,
        record_validators=checks,
        host_maddrs=[f"/ip{address.version}/{bind}/tcp/{port}"],
        identity_path=str(key.path),
        client_mode=client_mode,
        no_listen=client_mode,
        nat_port_map=not address.is_loopback,
        use_relay=False,
        auto_nat=False,  # p2pd would dial addresses that strangers name
        startup_timeout=STARTUP_SECONDS,
        **options,
    )
    try:
        dht.run_in_background(timeout=2 * STARTUP_SECONDS)
        if gatekeeper is not None and not client_mode:
            admission_serve(dht)
    except (P2PDaemonError, RuntimeError, TimeoutError, OSError) as error:
        dht_stop(dht)
        raise _swarm_error(error) from error
    return dht


def dht_stop(dht: DHT) -> None:
    """Stop the peer; takes a few seconds at most and says nothing."""
    swarm_log_quiet()
    with suppress(Exception):
        # One more call through the pipe: stores sent before it have left when it answers.
        dht.get("_barrier", return_future=True).result(_STOP_SECONDS)
    with suppress(Exception):
        dht.shutdown()
    if dht.pid is not None:
        dht.join(_STOP_SECONDS)
        if dht.is_alive():
            dht.kill()


def metrics_store(
    dht: DHT,
    *,
    run_id: str,
    key: SwarmKey,
    metrics_jws: str,
    metrics: PeerMetrics,
    expires_seconds: float,
) -> "Future[bool]":
    """Put this peer's metrics into the DHT without waiting; the future tells how it went."""
    loss_sum = 0.0 if metrics.loss is None else metrics.loss * metrics.mini_steps
    return dht.store(
        metrics_key(run_id),
        subkey=owner_subkey(key),
        value={
            "step": metrics.epoch,
            "samples_per_second": float(metrics.samples_per_second),
            "samples_accumulated": metrics.samples_accumulated,
            "loss": float(loss_sum),
            "mini_steps": metrics.mini_steps,
            "jws": metrics_jws,
        },
        expiration_time=swarm_time() + expires_seconds,
        return_future=True,
    )


def metrics_read(dht: DHT, *, run_id: str, timeout: float) -> list[MetricsRecord]:
    """Return every peer's newest metrics record.

    Raises:
        TimeoutError: no answer within ``timeout`` seconds.
    """
    found = dht.get(metrics_key(run_id), latest=True, return_future=True).result(timeout)
    if found is None or not isinstance(found.value, dict):
        return []
    records = (_record(subkey, entry) for subkey, entry in found.value.items())
    return [record for record in records if record is not None]


def visible_addresses(dht: DHT, *, timeout: float = 10.0) -> list[str]:
    """Return the multiaddresses, with ``/p2p/`` and peer id, at which others reach this peer."""
    job = partial(DHT._get_visible_maddrs, latest=True)
    return [str(address) for address in dht.run_coroutine(job, return_future=True).result(timeout)]


def _record(subkey: Any, entry: ValueWithExpiration[Any]) -> MetricsRecord | None:
    der = owner_public_der(subkey) if isinstance(subkey, bytes) else None
    value = entry.value
    if der is None or not isinstance(value, dict):
        return None
    try:
        stated = (SignedMetrics if "jws" in value else StockMetrics).parse_obj(value)
    except (ValueError, TypeError):
        return None
    steps = stated.mini_steps
    numbers = MetricsNumbers(
        step=stated.step,
        samples_per_second=stated.samples_per_second,
        samples_accumulated=stated.samples_accumulated,
        loss=stated.loss / steps if steps else None,
        mini_steps=steps,
    )
    jws = stated.jws if isinstance(stated, SignedMetrics) else ""
    return MetricsRecord(der, key_thumbprint(der), numbers, jws, entry.expiration_time)


def _process_prepare() -> None:
    """Set right in this process, before it forks, what hivemind leaves open."""
    children_guard()
    nesting_bound()
    relay_off()
    swarm_clock_set()


def _check_port_free(bind: str, port: int) -> None:
    # libp2p shares ports: a forgotten process on the same port would take half of the calls.
    if port == 0:
        return
    address = ipaddress.ip_address(bind)
    if address.is_unspecified:
        bind = "127.0.0.1" if address.version == 4 else "::1"
    with suppress(OSError), socket.create_connection((bind, port), timeout=1):
        raise SwarmError(
            f"port {port} is in use", "Stop the other process, or choose another with --port."
        )


def _swarm_error(error: Exception) -> SwarmError:
    text = str(error)
    if "already taken" in text:
        return SwarmError(
            "this machine's swarm identity is in use by another process",
            "Stop the other trainer of this device, or give this one its own --home.",
        )
    if "bootstrap" in text:
        return SwarmError(
            "none of the known peers answered",
            "Check the network and try again; the run may have no peer online now.",
            may_be_refusal=True,
        )
    return SwarmError(
        f"the peer-to-peer daemon did not start ({text[:200] or type(error).__name__})",
        "Look into swarm.log beside status.json; beeyard doctor checks this machine.",
    )
