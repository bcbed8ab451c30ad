"""What members may keep in the DHT for the gate: their own pass, and lists that the site signed.

Keys to sign a record with are free, so that without this one member could fill the DHT with
passes and lists that everybody would have to read through.
"""

from hivemind.dht.protocol import DHTProtocol
from hivemind.dht.routing import DHTID
from hivemind.dht.validation import DHTRecord, RecordValidatorBase

from training.protocol.keys import key_thumbprint
from training.protocol.names import members_key, revocations_key
from training.swarm.gatekeeper import Gatekeeper
from training.swarm.identity import owner_public_der


class GateValidator(RecordValidatorBase):
    """Refuses passes of others and lists of nobody, when they are stored and when they are read.

    Whether a pass has ended is not asked here: while the site is away, members go on.
    """

    def __init__(self, run_id: str, gatekeeper: Gatekeeper) -> None:
        self._gatekeeper = gatekeeper
        self._checks = {
            DHTID.generate(source=members_key(run_id)).to_bytes(): self._is_own_pass,
            DHTID.generate(source=revocations_key(run_id)).to_bytes(): self._is_list,
        }

    @property
    def priority(self) -> int:
        """Below the signature validator's 10: what is read here was signed by the owner."""
        return 5

    def validate(self, record: DHTRecord) -> bool:
        """Return whether a record may be kept. Runs in the DHT's event loop."""
        check = self._checks.get(record.key)
        if check is None:
            return True
        try:
            value = DHTProtocol.serializer.loads(record.value)
        except Exception:  # noqa: BLE001 - bytes of a stranger; what cannot be read is not kept
            return False
        der = owner_public_der(record.subkey)
        return der is not None and isinstance(value, str) and check(der, value)

    def _is_own_pass(self, der: bytes, token: str) -> bool:
        signed = self._gatekeeper.pass_of(token)
        return signed is not None and signed.body.key_thumbprint == key_thumbprint(der)

    def _is_list(self, _der: bytes, token: str) -> bool:
        return self._gatekeeper.is_list(token)
