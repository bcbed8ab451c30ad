"""Writes of runs."""

from web.runs.services.bars import (
    run_bar_add,
    run_bar_is_allowed,
    run_bar_lift,
    run_bars_expire,
)
from web.runs.services.configs import (
    config_check,
    configs_resign,
    configs_resign_from,
    run_config_publish,
    run_rewind,
)
from web.runs.services.devicebars import run_device_bar_add, run_device_bar_lift
from web.runs.services.drafts import (
    DraftConflict,
    draft_discard,
    draft_file_add,
    draft_import,
    draft_publish,
    draft_save,
    run_clone,
    run_make,
)
from web.runs.services.files import artifact_path, artifact_store, checkpoint_register
from web.runs.services.members import run_member_add, run_member_remove
from web.runs.services.requests import (
    join_request_approve,
    join_request_make,
    join_request_refuse,
    join_request_withdraw,
)
from web.runs.services.runs import (
    bootstrap_peers_mark,
    run_complete,
    run_create,
    run_message_send,
    run_transition,
    runs_resume_due,
)
from web.runs.services.tasks import task_allow, task_disallow, task_entries
from web.runs.services.texts import run_describe

__all__ = [
    "DraftConflict",
    "artifact_path",
    "artifact_store",
    "bootstrap_peers_mark",
    "checkpoint_register",
    "config_check",
    "configs_resign",
    "configs_resign_from",
    "draft_discard",
    "draft_file_add",
    "draft_import",
    "draft_publish",
    "draft_save",
    "join_request_approve",
    "join_request_make",
    "join_request_refuse",
    "join_request_withdraw",
    "run_bar_add",
    "run_bar_is_allowed",
    "run_bar_lift",
    "run_bars_expire",
    "run_clone",
    "run_complete",
    "run_config_publish",
    "run_create",
    "run_describe",
    "run_device_bar_add",
    "run_device_bar_lift",
    "run_make",
    "run_member_add",
    "run_member_remove",
    "run_message_send",
    "run_rewind",
    "run_transition",
    "runs_resume_due",
    "task_allow",
    "task_disallow",
    "task_entries",
]
