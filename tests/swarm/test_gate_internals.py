"""What the gate relies on inside hivemind 1.1.12. If a test here fails, hivemind has moved: read
the change before anything else, since a handler that no longer overrides is an open door."""

import importlib.metadata
import inspect
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_type_hints

import hivemind
import pytest
from hivemind.averaging import DecentralizedAverager
from hivemind.averaging.allreduce import AllReduceRunner
from hivemind.averaging.matchmaking import Matchmaking
from hivemind.dht.node import DHTNode
from hivemind.dht.protocol import DHTProtocol
from hivemind.p2p import P2P
from hivemind.p2p.p2p_daemon_bindings.p2pclient import Client
from hivemind.p2p.servicer import ServicerBase
from hivemind.proto import auth_pb2, averaging_pb2
from hivemind.utils import auth, timed_storage

from tests.swarm.peers import hiveminds_own
from training.swarm.averaging import GradientAverager, TrainingStateAverager
from training.swarm.clock import swarm_clock_set, swarm_time
from training.swarm.gated import GatedAverager
from training.swarm.relay import relay_off

OURS = (GradientAverager, TrainingStateAverager)
HANDLERS = ("rpc_aggregate_part", "rpc_download_state", "rpc_join_group")


def parameters(function: Callable[..., Any]) -> list[str]:
    return list(inspect.signature(function).parameters)


def test_hivemind_is_the_version_whose_insides_were_read() -> None:
    assert importlib.metadata.version("hivemind") == "1.1.12"


@pytest.mark.parametrize("ours", OURS)
def test_every_handler_of_an_averager_is_gated_and_called_as_hivemind_calls_it(
    ours: type[Any],
) -> None:
    theirs = hiveminds_own(ours)
    assert theirs.__module__.startswith("hivemind.")
    assert ours.__name__ == theirs.__name__
    known = {name for name in dir(DecentralizedAverager) if name.startswith("rpc_")}
    assert known == set(HANDLERS), "a handler that the gate does not know is an open door"
    assert {name for name in dir(ours) if name.startswith("rpc_")} == known
    for name in HANDLERS:
        gated, stock = getattr(ours, name), getattr(theirs, name)
        assert gated.__qualname__ == f"GatedAverager.{name}"
        assert parameters(gated) == parameters(stock)
        assert get_type_hints(gated) == get_type_hints(stock)
        assert inspect.isasyncgenfunction(gated)


@pytest.mark.parametrize("ours", OURS)
def test_hivemind_registers_the_same_calls_for_our_averagers(ours: type[Any]) -> None:
    def handlers(servicer: type[Any]) -> list[Any]:
        fresh = type(servicer.__name__, (servicer,), {"_rpc_handlers": None})
        fresh._collect_rpc_handlers()
        return sorted(fresh._rpc_handlers, key=lambda handler: handler.method_name)

    assert handlers(ours) == handlers(hiveminds_own(ours))


def test_all_calls_to_other_averagers_go_through_get_stub() -> None:
    for caller in (
        DecentralizedAverager._load_state_from_peers,
        Matchmaking._request_join_group,
        AllReduceRunner._get_peer_stub,
    ):
        assert "get_stub(" in inspect.getsource(caller)
    assert "_get_peer_stub(" in inspect.getsource(AllReduceRunner._communicate_with_peer)
    assert parameters(GatedAverager.get_stub) == parameters(ServicerBase.get_stub)
    for place in (DecentralizedAverager.__init__, DecentralizedAverager._run_allreduce_inplace_):
        assert "servicer_type=type(self)" in inspect.getsource(place)


def test_what_else_the_averagers_gate_overrides_is_there() -> None:
    assert parameters(DecentralizedAverager.run) == ["self"]
    assert parameters(ServicerBase.add_p2p_handlers)[:3] == ["self", "p2p", "wrapper"]
    source = inspect.getsource(DecentralizedAverager._run_internal)
    assert "await self.add_p2p_handlers(self._p2p, namespace=self.prefix)" in source
    assert averaging_pb2.PROTOCOL_VIOLATION != averaging_pb2.ACCEPTED


def test_the_authorizer_is_asked_on_every_call_of_the_dht() -> None:
    base = auth.TokenAuthorizerBase
    assert parameters(base.__init__) == ["self", "local_private_key"]
    assert set(base.__abstractmethods__) == {
        "get_token",
        "is_token_valid",
        "does_token_need_refreshing",
    }
    for method in ("sign_request", "validate_request", "sign_response", "validate_response"):
        assert "await self.refresh_token_if_needed()" in inspect.getsource(getattr(base, method))
    for method in ("validate_request", "validate_response"):
        assert "self.is_token_valid(" in inspect.getsource(getattr(base, method))
    fields = {field.name for field in auth_pb2.AccessToken.DESCRIPTOR.fields}
    assert fields == {"username", "public_key", "expiration_time", "signature"}
    calls = {name for name in dir(DHTProtocol) if name.startswith("rpc_")} - {"rpc_semaphore"}
    assert calls == {"rpc_ping", "rpc_store", "rpc_find"}
    wrapped = inspect.getsource(DHTProtocol.create)
    assert "AuthRPCWrapper(self, AuthRole.SERVICER, self.authorizer)" in wrapped
    assert "authorizer" in parameters(DHTNode.create)


def test_the_relay_and_the_dialling_service_can_be_switched_off() -> None:
    assert {"use_relay", "auto_nat", "use_auto_relay"} <= set(parameters(P2P.create))
    assert "cls.DHT_MODE_MAPPING[dht_mode].copy()" in inspect.getsource(P2P.create)
    relay_off()
    for flags in P2P.DHT_MODE_MAPPING.values():
        (file,) = [a[3:] for a in P2P._make_process_args("p2pd", **flags) if a[:3] == "-f="]
        assert json.loads(Path(file).read_text()) == {"Relay": {"Enabled": False}}
    assert parameters(Client.disconnect) == ["self", "peer_id"]
    assert parameters(Client.connect) == ["self", "peer_id", "maddrs"]
    assert parameters(P2P.add_binary_stream_handler)[:3] == ["self", "name", "handler"]
    assert parameters(P2P.call_binary_stream_handler) == ["self", "peer_id", "handler_name"]


def test_every_module_of_hivemind_goes_by_the_swarms_time() -> None:
    before = swarm_time()
    swarm_clock_set(-300.0)
    try:
        users = [
            module
            for name, module in sys.modules.items()
            if name.startswith("hivemind") and hasattr(module, "get_dht_time")
        ]
        assert {timed_storage, auth, hivemind.utils} <= set(users)
        assert len(users) >= 10
        assert all(module.get_dht_time is swarm_time for module in users)
        assert -301 < hivemind.utils.get_dht_time() - before < -299
        storage: timed_storage.TimedStorage[str, int] = timed_storage.TimedStorage()
        assert storage.store("key", 1, before - 290)
        assert not storage.store("other", 1, before - 310)
    finally:
        swarm_clock_set(0.0)
