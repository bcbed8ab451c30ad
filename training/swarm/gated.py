"""The gate on averaging: hivemind's averagers let anybody in, so these handlers ask first.

hivemind registers a handler after its class and method, with message types from the method's
annotations: both must be as in hivemind (1.1.12), or peers cannot call each other.
"""

from typing import Any, AsyncIterator, ClassVar  # noqa: UP035 - hivemind knows typing's alone

from hivemind.p2p import P2PContext, PeerID
from hivemind.proto import averaging_pb2

from training.swarm.doorman import Doorman, Refused


class GatedAverager:
    """Goes before hivemind's averager in the bases of a class. Without a gatekeeper at the DHT
    peer (a run that is open to all) it changes nothing."""

    _doorman: ClassVar[Doorman | None] = None
    """Of this process: an averager runs in a process of its own."""

    dht: Any
    prefix: str

    def run(self) -> None:
        """Serve in the forked process, with a gate of its own."""
        gatekeeper = getattr(self.dht, "gatekeeper", None)
        if gatekeeper is not None:
            type(self)._doorman = Doorman(self.dht, gatekeeper, run_id=self.dht.run_id)
        super().run()  # type: ignore[misc]

    async def add_p2p_handlers(self, p2p: Any, *args: Any, **options: Any) -> None:
        """Begin to serve. Passes are looked up beforehand: a caller waits a second or two only."""
        if self._doorman is not None:
            self._doorman.keep()
        await super().add_p2p_handlers(p2p, *args, **options)  # type: ignore[misc]

    async def rpc_join_group(
        self, request: averaging_pb2.JoinRequest, context: P2PContext
    ) -> AsyncIterator[averaging_pb2.MessageFromLeader]:
        """Take a member into the group."""
        if not await self._admits(context):
            yield averaging_pb2.MessageFromLeader(code=averaging_pb2.PROTOCOL_VIOLATION)
            return
        async for message in super().rpc_join_group(request, context):  # type: ignore[misc]
            if self._is_cut(context):
                yield averaging_pb2.MessageFromLeader(code=averaging_pb2.PROTOCOL_VIOLATION)
                return
            yield message

    async def rpc_aggregate_part(
        self, stream: AsyncIterator[averaging_pb2.AveragingData], context: P2PContext
    ) -> AsyncIterator[averaging_pb2.AveragingData]:
        """Average the parts of a member; a ban ends the stream at its next message."""
        if not await self._admits(context):
            yield averaging_pb2.AveragingData(code=averaging_pb2.PROTOCOL_VIOLATION)
            return
        checked = _checked(stream, self._doorman, context.remote_id)
        async for message in super().rpc_aggregate_part(checked, context):  # type: ignore[misc]
            if self._is_cut(context):
                yield averaging_pb2.AveragingData(code=averaging_pb2.PROTOCOL_VIOLATION)
                return
            yield message

    async def rpc_download_state(
        self, _request: averaging_pb2.DownloadRequest, _context: P2PContext
    ) -> AsyncIterator[averaging_pb2.DownloadData]:
        """Give the state to a member; a stranger gets not one byte."""
        if not await self._admits(_context):
            return
        async for message in super().rpc_download_state(_request, _context):  # type: ignore[misc]
            if self._is_cut(_context):
                return
            yield message

    @classmethod
    def get_stub(cls, p2p: Any, peer: PeerID, *, namespace: str | None = None) -> Any:
        """Return what calls a peer, if that peer has a pass itself."""
        stub = super().get_stub(p2p, peer, namespace=namespace)  # type: ignore[misc]
        return stub if cls._doorman is None else GatedStub(stub, peer, cls._doorman)

    async def _admits(self, context: P2PContext) -> bool:
        return self._doorman is None or await self._doorman.admits(context.remote_id)

    def _is_cut(self, context: P2PContext) -> bool:
        try:
            if self._doorman is not None:
                self._doorman.check(context.remote_id)
        except Refused:
            return True
        return False


class GatedStub:
    """Calls a peer that has a pass, as long as it is not revoked; raises ``Refused`` otherwise."""

    def __init__(self, stub: Any, peer: PeerID, doorman: Doorman) -> None:
        self._stub, self._peer, self._doorman = stub, peer, doorman

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._stub, name)

        async def call(message: Any, **options: Any) -> Any:
            await self._doorman.require(self._peer)
            if hasattr(message, "__aiter__"):
                message = _checked(message, self._doorman, self._peer)
            answer = await method(message, **options)
            is_stream = hasattr(answer, "__aiter__")
            return _checked(answer, self._doorman, self._peer) if is_stream else answer

        return call


async def _checked(
    stream: AsyncIterator[Any], doorman: Doorman | None, peer: PeerID
) -> AsyncIterator[Any]:
    """Pass a stream on until its peer is revoked."""
    try:
        async for message in stream:
            if doorman is not None:
                doorman.check(peer)
            yield message
    finally:
        close = getattr(stream, "aclose", None)
        if close is not None:
            await close()
