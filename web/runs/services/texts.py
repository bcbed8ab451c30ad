"""How a run is presented: its title, its texts, and who may see it."""

from django.db import transaction

from training.protocol.errors import ErrorCode
from web.accounts.models import User
from web.accounts.names import public_name
from web.core.audit import audit_record
from web.core.errors import AppError
from web.core.events import access_changed_publish
from web.runs.models import Run
from web.runs.services.runs import join_policy_check, organiser_require, title_check
from web.runs.signals import run_changed

MAX_DESCRIPTION = 5_000
_FIELDS = ("title", "summary", "description", "is_public", "join_policy")

_WORDS = {"is_public": "visibility", "join_policy": "way to join"}


@transaction.atomic
def run_describe(
    actor: User,
    run: Run,
    *,
    title: str,
    summary: str,
    description: str,
    is_public: bool,
    join_policy: str = "",
) -> bool:
    """Change how a run is presented; return whether anything changed. ``run`` is updated too.

    Its config is untouched: trainers do not notice. A run made private disappears for everybody
    without a part in it, from pages that are open as well. Whoever is in it stays in it when
    newcomers have to ask. An empty ``join_policy`` leaves it as it is.

    Raises:
        AppError: FORBIDDEN or BODY_INVALID.
    """
    organiser_require(actor, run)
    title_check(title)
    if len(summary) > 300:
        raise AppError(ErrorCode.BODY_INVALID, "summary: at most 300 characters.")
    if len(description) > MAX_DESCRIPTION:
        raise AppError(
            ErrorCode.BODY_INVALID, f"description: at most {MAX_DESCRIPTION} characters."
        )
    if join_policy:
        join_policy_check(join_policy)
    row = Run.objects.select_for_update().get(pk=run.pk)
    texts = (title.strip(), summary.strip(), description.strip())
    wanted = (*texts, is_public, join_policy or row.join_policy)
    changed = {
        name: (getattr(row, name), value)
        for name, value in zip(_FIELDS, wanted, strict=True)
        if getattr(row, name) != value
    }
    if not changed:
        return False
    for name, (_, value) in changed.items():
        setattr(row, name, value)
        setattr(run, name, value)
    row.save(update_fields=list(changed))
    if "is_public" in changed:
        transaction.on_commit(access_changed_publish)
    text = f"{public_name(actor)} changed the run's {_listed(changed)}"
    run_changed.send(Run, run=row, kind="run.described", text=text)
    before, after = ({name: pair[side] for name, pair in changed.items()} for side in (0, 1))
    audit_record(actor, "run.described", row.slug, {"before": before, "after": after})
    return True


def _listed(changed: dict[str, tuple[object, object]]) -> str:
    names = [_WORDS.get(name, name) for name in changed]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
