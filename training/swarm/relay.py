"""No relay: p2pd would carry connections of anybody who asks, and there is no pass for that.

p2pd (of hivemind 1.1.12) begins with the relay enabled, and its flags ``-relay`` and
``-relayService`` can only enable it: what they leave is relay.New for everybody. A config file
can disable it. hivemind does not hand that flag on; the flags of its modes can be added to.
"""

from pathlib import Path

from hivemind.p2p import P2P

_CONFIG = Path(__file__).with_name("p2pd.json")


def relay_off() -> None:
    """Start each p2pd from now on without the relay service; a second call changes nothing."""
    for flags in P2P.DHT_MODE_MAPPING.values():
        flags["f"] = str(_CONFIG)
