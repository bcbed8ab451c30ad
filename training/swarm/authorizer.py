"""The pass on every call of the DHT: ping, store, find, and their answers."""

from datetime import UTC, datetime

from hivemind.proto.auth_pb2 import AccessToken
from hivemind.utils.auth import TokenAuthorizerBase

from training.client.swarm_key import SwarmKey
from training.protocol.admission import Verdict
from training.swarm.gatekeeper import Gatekeeper
from training.swarm.identity import rsa_key


class PassAuthorizer(TokenAuthorizerBase):
    """Shows this peer's pass and demands the others'. It never waits, and never needs the site."""

    def __init__(self, key: SwarmKey, gatekeeper: Gatekeeper) -> None:
        super().__init__(rsa_key(key))
        self.gatekeeper = gatekeeper
        self._local_access_token: AccessToken | None = None

    async def refresh_token_if_needed(self) -> None:
        """Take the newest pass. hivemind would raise in our own process when it has expired."""
        token = self._local_access_token
        if token is None or self.does_token_need_refreshing(token):
            self._local_access_token = await self.get_token()

    async def get_token(self) -> AccessToken:
        token = self.gatekeeper.view.own_pass
        signed = self.gatekeeper.pass_of(token)
        expires_at = datetime.fromtimestamp(0, UTC) if signed is None else signed.expires_at
        return AccessToken(
            username="" if signed is None else signed.body.sub,
            public_key=self.local_public_key.to_bytes(),
            expiration_time=expires_at.isoformat(),
            signature=token.encode(),
        )

    def is_token_valid(self, access_token: AccessToken) -> bool:
        token = access_token.signature.decode(errors="replace")
        if self.gatekeeper.judge_key(access_token.public_key, token) is not Verdict.ADMITTED:
            return False
        signed = self.gatekeeper.pass_of(token)
        return signed is not None and signed.body.sub == access_token.username

    def does_token_need_refreshing(self, access_token: AccessToken) -> bool:
        return bool(access_token.signature != self.gatekeeper.view.own_pass.encode())
