"""New keys for a managed worker whose home somebody may have read."""

from django.conf import settings
from django.db import transaction

from training.protocol.keys import key_load
from web.accounts.devices import device_key_replace
from web.accounts.models import Device, User
from web.core.audit import audit_record
from web.workers.journal import event_note
from web.workers.launcher import worker_folder
from web.workers.models import ManagedWorker
from web.workers.processes import terminate

_KEYS = ("device.jwk", "swarm.key")


@transaction.atomic
def managed_worker_keys_replace(actor: User | None, worker: ManagedWorker) -> Device | None:
    """Refuse the worker's keys everywhere, delete them, and end its process.

    It is started again by itself, makes new keys, and is the same device as before. Returns that
    device; None when it never joined.

    Raises:
        ValueError: its key file cannot be read, or is on another node.
    """
    if worker.node != settings.NODE:
        raise ValueError(f"{worker.name} runs on node {worker.node}: give this command there")
    home = worker_folder(worker) / "home"
    device = None
    if (home / _KEYS[0]).exists():
        kid = key_load((home / _KEYS[0]).read_text()).thumbprint()
        device = Device.objects.filter(kid=kid, user__is_service=True).first()
    event_note(worker, "new keys", f"by {actor.username}" if actor else "by the operator")
    if device is not None:
        device_key_replace(actor, device)
    audit_record(actor, "worker.keys.replaced", f"{worker.run.slug}/{worker.name}")

    def rest() -> None:
        # On commit: a process that comes back must meet the refusal of its old keys.
        for name in _KEYS:
            (home / name).unlink(missing_ok=True)
        terminate(worker.pid, worker.process_started_at)

    transaction.on_commit(rest)
    return device
