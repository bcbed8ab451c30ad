"""Receipts: what the site counted for this device."""

from dataclasses import dataclass, field
from pathlib import Path

from pydantic import Field

from training.client.files import file_write
from training.client.http import PlatformClient
from training.client.trust import Trust
from training.protocol.api import ReceiptOut
from training.protocol.base import TolerantModel
from training.protocol.claims import Receipt
from training.protocol.envelope import EnvelopeError, verify
from training.protocol.names import TYP_RECEIPT
from training.protocol.states import CreditState

_Key = tuple[int, int]
"""Lineage and epoch."""


class ReceiptPage(TolerantModel):
    """One page of ``receipts/``, newest first."""

    items: tuple[ReceiptOut, ...] = ()
    next: str | None = Field(default=None)


@dataclass
class ReceiptReader:
    """Tells which receipts are new, and keeps the signed ones as proof in ``folder``."""

    client: PlatformClient
    slug: str
    folder: Path
    trust: Trust
    _seen: dict[_Key, tuple[int, CreditState]] | None = field(default=None, init=False)

    def fetch(self) -> list[str]:
        """Return a sentence for each receipt that is new or changed since the last call.

        The first call only learns what was counted before.
        """
        page = self.client.get(f"/runs/{self.slug}/receipts/", ReceiptPage)
        lines: list[str] = []
        seen = {} if self._seen is None else self._seen
        for item in reversed(page.items):
            receipt = self._checked(item)
            if receipt is None:
                lines.append(f"a receipt for epoch {item.epoch} is badly signed and was ignored")
                continue
            key, value = (receipt.lineage, receipt.epoch), (receipt.samples, receipt.state)
            if seen.get(key) == value:
                continue
            first_time = key not in seen
            seen[key] = value
            name = f"{receipt.lineage}-{receipt.epoch:08d}.jws"
            file_write(self.folder / name, item.jws.encode())
            if first_time or receipt.state is CreditState.REJECTED:
                lines.append(receipt_sentence(receipt))
        is_first, self._seen = self._seen is None, seen
        return [] if is_first else lines

    def _checked(self, item: ReceiptOut) -> Receipt | None:
        try:
            signed = verify(
                item.jws,
                typ=TYP_RECEIPT,
                model=Receipt,
                keys=(*self.trust.keys, *self.trust.retired),
                now=self.client.clock.now(),
            )
        except EnvelopeError:
            return None
        return signed.body if signed.body.run == self.slug else None


def receipt_sentence(receipt: Receipt) -> str:
    """Return a receipt in words."""
    if receipt.state is CreditState.REJECTED:
        return f"not counted: {receipt.samples:,} samples (epoch {receipt.epoch}): {receipt.reason}"
    return f"counted: {receipt.samples:,} samples (epoch {receipt.epoch})"
