"""No relay: p2pd would carry connections of anybody who asks, and there is no pass for that.

``use_relay=False`` is about using relays; that p2pd is one is a flag of its own, which hivemind
(1.1.12) does not hand on. The flags of its modes are all that can be added to.
"""

from hivemind.p2p import P2P


def relay_off() -> None:
    """Start each p2pd from now on without the relay service; a second call changes nothing."""
    for flags in P2P.DHT_MODE_MAPPING.values():
        flags["relayService"] = 0
