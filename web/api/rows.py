"""Rows and bodies of the API, made of rows of the database."""

from datetime import datetime, timedelta
from typing import Any

from training.protocol.api import CheckpointOut, ConfigOut, LedgerRow, ReceiptOut
from training.protocol.claims import CheckpointFile, Receipt
from training.protocol.errors import ErrorCode
from training.protocol.names import TYP_RECEIPT
from training.protocol.states import CreditState, RunState
from web.accounts.models import User
from web.accounts.names import public_name
from web.api.run_schemas import RunOut
from web.api.schemas import ProfileOut, ProfileRun
from web.contributions.models import LedgerEntry
from web.contributions.selectors import user_totals
from web.core.errors import AppError
from web.core.keys import site_sign
from web.monitoring.selectors import summaries_of
from web.runs.config_diff import config_diff
from web.runs.models import Checkpoint, Run
from web.runs.selectors import checkpoint_latest, config_current, config_newest, config_previous

LEDGER_COLUMNS = ("epoch", "user", "device", "samples", "state", "reason", "recorded_at")
RECEIPT_LIFETIME = timedelta(days=3650)
"""A receipt is a proof: it should outlive the run."""


def run_out(run: Run, now: datetime) -> RunOut:
    """Return everything public about a run but its live peers."""
    (summary,) = summaries_of([run], now)
    config, checkpoint = config_newest(run), checkpoint_latest(run)
    return RunOut(
        **summary.model_dump(),
        description=run.description,
        organiser=public_name(run.organiser),
        is_public=run.is_public,
        join_policy=run.join_policy,
        run_state=RunState(run.state),
        created_at=run.created_at,
        max_epochs=config.body.get("max_epochs") if config else None,
        checkpoint_epoch=checkpoint.epoch if checkpoint else None,
    )


def config_out(run: Run, number: int | None) -> ConfigOut:
    """Return a config version with its difference to the one before.

    Raises:
        AppError: CONFIG_MISSING, or NOT_FOUND (no such version).
    """
    version = run.configs.filter(version=number).first() if number else config_current(run)
    if version is None:
        raise AppError(ErrorCode.NOT_FOUND, f"This run has no config version {number}.")
    previous = config_previous(version)
    return ConfigOut(
        version=version.version,
        jws=version.jws,
        sha256=version.sha256,
        config=version.body,
        diff=config_diff(previous.body, version.body) if previous else [],
        published_at=version.published_at,
    )


def ledger_row(entry: LedgerEntry, viewer: User | None) -> LedgerRow:
    """Return a ledger row as the viewer may read it."""
    is_open = entry.user.is_profile_public or entry.user == viewer
    return LedgerRow(
        epoch=entry.epoch,
        user=public_name(entry.user, viewer),
        device=entry.device.name if is_open else "",
        samples=entry.samples,
        state=CreditState(entry.state),
        reason=entry.reason,
        recorded_at=entry.recorded_at,
    )


def profile_out(user: User) -> ProfileOut:
    """Return the profile of an account that the viewer may see."""
    totals = user_totals(user)
    names = ("title", "samples", "epochs", "device_hours")
    runs = [
        ProfileRun(run=run["slug"], last_at=run["last_seen"], **{n: run[n] for n in names})
        for run in totals.runs
    ]
    return ProfileOut(
        username=user.username,
        member_since=user.date_joined,
        samples=totals.samples,
        device_hours=totals.device_hours,
        num_devices=user.devices.filter(revoked_at=None).count(),
        runs=runs,
    )


def user_ledger_row(entry: LedgerEntry) -> dict[str, Any]:
    """Return a row of an account whose profile the viewer may see."""
    return {
        "run": entry.run.slug,
        "epoch": entry.epoch,
        "device": entry.device.name,
        "samples": entry.samples,
        "state": entry.state,
        "reason": entry.reason,
        "recorded_at": entry.recorded_at,
    }


def receipt_out(entry: LedgerEntry) -> ReceiptOut:
    """Return the signed acknowledgement of a row of ``receipts``."""
    corrected: int = getattr(entry, "corrected", 0)
    receipt = Receipt(
        run=entry.run.slug,
        lineage=entry.lineage,
        epoch=entry.epoch,
        user=entry.user.username,
        device=entry.device.public_id,
        samples=entry.samples + corrected,
        state=CreditState(entry.state),
        reason="corrected by an organiser" if corrected else entry.reason,
        code="corrected" if corrected else entry.ground,
        waited_since=entry.settles.recorded_at if entry.settles else None,
    )
    return ReceiptOut(
        epoch=receipt.epoch,
        samples=receipt.samples,
        state=receipt.state,
        reason=receipt.reason,
        code=receipt.code,
        jws=site_sign(receipt, TYP_RECEIPT, RECEIPT_LIFETIME),
    )


def checkpoint_out(checkpoint: Checkpoint) -> CheckpointOut:
    """Return a checkpoint as its manifest lists it."""
    return CheckpointOut(
        epoch=checkpoint.epoch,
        lineage=checkpoint.lineage,
        config_version=checkpoint.config_version,
        saved_at=checkpoint.saved_at,
        files=tuple(CheckpointFile.model_validate(file) for file in checkpoint.files),
        manifest=checkpoint.manifest,
    )
