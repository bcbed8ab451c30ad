"""The smallest trainer: ``python -m tests.swarm.small_trainer FOLDER SPEED [OPTIONS] PEERS…``.

It trains the config's task at ``SPEED`` samples per second until SIGTERM, with our optimizer and
signed metrics; with ``--stock``, hivemind's own optimizer and no metrics at all.
``FOLDER/truth.jsonl`` gets one line per finished epoch: what really entered the average.
"""

import argparse
import json
import signal
import threading
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import hivemind
import torch
from joserfc.jwk import OKPKey

from tests.swarm.stand_in_passes import PassOffice, clock_measured
from training.client.clock import SiteClock
from training.client.gate import Gate
from training.client.swarm_key import SwarmKey, swarm_key_load_or_create
from training.protocol.config import RunConfig
from training.protocol.envelope import sign
from training.protocol.keys import key_generate, key_load
from training.protocol.metrics import EpochSamples, PeerMetrics, RoundSeen
from training.protocol.names import TYP_METRICS
from training.protocol.rounds import round_seen, rounds_that_fit
from training.swarm.clock import swarm_clock_set, swarm_now, swarm_time
from training.swarm.dht import SwarmError, dht_start, dht_stop, metrics_store
from training.swarm.identity import rsa_key
from training.swarm.optimizer import swarm_optimizer
from training.swarm.watch import GateWatch
from training.tasks.optim import optimizer_build, scheduler_build
from training.tasks.registry import task_get

MICRO_BATCH = 8


class Publisher(threading.Thread):
    """Publishes signed metrics every half second."""

    def __init__(
        self,
        config: RunConfig,
        dht: hivemind.DHT,
        key: SwarmKey,
        *,
        gate: Gate | None,
        device: OKPKey,
    ) -> None:
        super().__init__(daemon=True)
        self.gate = gate
        self.config, self.dht, self.key, self.device = config, dht, key, device
        self.epoch = self.samples = self.total = 0
        self.loss: float | None = None
        self.recent: list[EpochSamples] = []
        self.rounds: list[RoundSeen] = []

    def run(self) -> None:
        while True:
            now = swarm_now()
            metrics = PeerMetrics(
                run=self.config.run,
                lineage=self.config.lineage,
                peer_id=self.key.peer_id,
                config_version=1,
                epoch=self.epoch,
                samples_accumulated=self.samples,
                samples_total=self.total,
                samples_per_second=5.0,
                loss=self.loss,
                recent=tuple(self.recent[-32:]),
                revocations_seq=self.gate.view.revocations_seq if self.gate else 0,
                rounds=rounds_that_fit(self.rounds),
                taken_at=now,
            )
            lifetime = timedelta(minutes=2)
            token = sign(
                metrics, typ=TYP_METRICS, key=self.device, issuer="x", lifetime=lifetime, now=now
            )
            metrics_store(
                self.dht,
                run_id=self.config.swarm_id,
                key=self.key,
                metrics_jws=token,
                metrics=metrics,
                expires_seconds=60,
            )
            time.sleep(0.5)


def main(
    folder: Path, speed: float, *, is_stock: bool, site: str, ahead: float, peers: list[str]
) -> None:
    config = RunConfig.model_validate_json((folder / "config.json").read_text())
    key = swarm_key_load_or_create(folder / "swarm.key")
    real = time.time
    time.time = lambda: real() + ahead
    clock = clock_measured(ahead)
    swarm_clock_set(clock.correction)
    gate = gate_make(folder, config, key, site=site, clock=clock)
    dht = dht_enter(config, key, peers=peers, gate=gate)
    watch = GateWatch(
        dht, key=key, gate=gate, clock=clock, spreads_list=False, revoked=lambda: None
    )
    watch.look()
    task = task_get(config.task.name)
    model = task.model_build(config, folder)
    optimizer = (stock_optimizer if is_stock else our_optimizer)(config, dht, key, model)
    leaving = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: leaving.set())
    watch.start()
    optimizer.load_state_from_peers()
    publisher = Publisher(config, dht, key, gate=gate, device=device_key(folder))
    publisher.epoch = optimizer.local_epoch
    if not is_stock:
        publisher.start()
    (folder / "started").write_text(str(optimizer.local_epoch))
    batches = task.batches(config, folder, seed=hash(key.peer_id) % 1000, micro_batch=MICRO_BATCH)
    while not leaving.is_set():
        time.sleep(MICRO_BATCH / speed)
        while (folder / "sleep").exists():
            time.sleep(0.1)
        micro_step(folder, optimizer, publisher, task.loss(model, next(batches)), is_stock=is_stock)
    watch.stop()
    optimizer.shutdown()
    dht_stop(dht)


def dht_enter(
    config: RunConfig, key: SwarmKey, *, peers: list[str], gate: Gate | None
) -> hivemind.DHT:
    """Try again, as a real trainer does: a busy peer may answer late."""
    attempts = 3
    while True:
        try:
            return dht_start(
                key=key,
                run_id=config.swarm_id,
                initial_peers=peers,
                bind="127.0.0.1",
                port=0,
                client_mode=False,
                gate=gate,
            )
        except SwarmError as error:
            attempts -= 1
            if not attempts or not error.may_be_refusal:
                raise
            time.sleep(2)


def gate_make(
    folder: Path, config: RunConfig, key: SwarmKey, *, site: str, clock: SiteClock
) -> Gate | None:
    """Return the gate of a run that demands passes, with a heartbeat that renews its own."""
    if config.swarm.admission == "open":
        return None
    office = PassOffice(Path(site), SiteClock())
    token = office.pass_make(config, key)
    gate = Gate(folder, config=config, keys=[office.key], peer_pass=token, clock=clock)
    office.beat(gate, config, key, seconds=config.report.heartbeat_seconds)
    return gate


def micro_step(
    folder: Path, optimizer: Any, publisher: Publisher, result: tuple[Any, int], *, is_stock: bool
) -> None:
    loss, count = result
    loss.backward()
    epoch, before = optimizer.local_epoch, optimizer.grad_averager.local_samples_accumulated
    optimizer.step(batch_size=count)
    optimizer.zero_grad()
    publisher.total += count
    publisher.loss = float(loss)
    if optimizer.local_epoch == epoch:
        publisher.samples = optimizer.grad_averager.local_samples_accumulated
        return
    if is_stock and optimizer.local_epoch == epoch + 1:
        note_epoch(folder, epoch, before + count)
    for finished in [] if is_stock else optimizer.finished:
        note_epoch(folder, finished.epoch, finished.samples)
        note_group(folder, finished.group_size, finished.seconds)
        publisher.recent.append(EpochSamples(epoch=finished.epoch, samples=finished.samples))
        size, own = finished.group_size, publisher.key.peer_id
        if size:
            seen = round_seen(finished.epoch, finished.weights, own=own, group_size=size)
            publisher.rounds.append(seen)
    if not is_stock:
        optimizer.finished.clear()
    publisher.epoch = optimizer.local_epoch
    publisher.samples = optimizer.grad_averager.local_samples_accumulated


def note_group(folder: Path, size: int, seconds: float) -> None:
    with (folder / "groups.jsonl").open("a") as file:
        file.write(json.dumps({"at": swarm_time(), "size": size, "seconds": seconds}) + "\n")


def device_key(folder: Path) -> OKPKey:
    """Return the device's key: the one that a test left, or a new one."""
    path = folder / "device.jwk"
    return key_load(path.read_text()) if path.exists() else key_generate()


def note_epoch(folder: Path, epoch: int, samples: int) -> None:
    with (folder / "truth.jsonl").open("a") as file:
        file.write(json.dumps([epoch, samples]) + "\n")


def our_optimizer(
    config: RunConfig, dht: hivemind.DHT, key: SwarmKey, model: torch.nn.Module
) -> Any:
    groups, factory = optimizer_build(config.optimizer, model)
    return swarm_optimizer(
        dht=dht,
        config=config,
        key=key,
        param_groups=groups,
        optimizer_factory=factory,
        scheduler_factory=scheduler_build(config.optimizer),
    )


def stock_optimizer(
    config: RunConfig, dht: hivemind.DHT, key: SwarmKey, model: torch.nn.Module
) -> Any:
    groups, factory = optimizer_build(config.optimizer, model)
    swarm = config.swarm
    return hivemind.Optimizer(
        dht=dht,
        run_id=config.swarm_id,
        target_batch_size=swarm.target_batch_size,
        params=groups,
        optimizer=factory,
        scheduler=scheduler_build(config.optimizer),
        matchmaking_time=swarm.matchmaking_seconds,
        averaging_timeout=swarm.averaging_timeout_seconds,
        average_state_every=swarm.average_state_every,
        averager_opts={"request_timeout": swarm.request_timeout_seconds},
        tracker_opts={"private_key": rsa_key(key)},
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("speed", type=float)
    parser.add_argument("peers", nargs="*")
    parser.add_argument("--stock", action="store_true")
    parser.add_argument("--site", default="")
    parser.add_argument("--ahead", type=float, default=0.0)
    words = parser.parse_intermixed_args()
    main(
        words.folder,
        words.speed,
        is_stock=words.stock,
        site=words.site,
        ahead=words.ahead,
        peers=words.peers,
    )
