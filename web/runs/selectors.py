"""Reads of runs. Every access to a run goes through :func:`run_get_visible`."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.contrib.auth.models import AnonymousUser
from django.db.models import BigIntegerField, Q, QuerySet, Value
from django.db.models.functions import Cast
from django.utils import timezone

from training.protocol.errors import ErrorCode
from training.protocol.states import RunState
from web.accounts.models import Device, User
from web.core.errors import AppError
from web.runs.draft_body import artifacts_of
from web.runs.models import (
    Artifact,
    Checkpoint,
    ConfigDraft,
    Run,
    RunBar,
    RunConfigVersion,
    RunDeviceBar,
    RunMember,
)
from web.runs.roles import REFUSALS, Right, RunRole, rights_of

Viewer = User | AnonymousUser | None
FRESH = timedelta(minutes=2)
"""An address that was seen within this time is handed out."""
MAX_ADDRESSES = 32
MAX_ARTIFACTS = 200
_OPEN_TO_ALL = Q(is_public=True) & ~Q(state=RunState.DRAFT)
"""As :attr:`web.runs.models.Run.is_open_to_all`, for the database."""


def runs_visible(viewer: Viewer) -> QuerySet[Run]:
    """Return the runs to list: public ones and one's own; drafts only to their organisers."""
    runs = Run.objects.select_related("organiser")
    if not isinstance(viewer, User):
        return runs.filter(_OPEN_TO_ALL)
    if viewer.is_superuser or viewer.is_service:
        return runs
    barred = ~_OPEN_TO_ALL & Q(pk__in=RunBar.objects.filter(user=viewer).values("run"))
    return runs.filter(_OPEN_TO_ALL | _own(viewer)).exclude(barred).distinct()


def run_get_visible(viewer: Viewer, slug: str) -> Run:
    """Return a run that the viewer may see. A draft is as private as a private run.

    Raises:
        AppError: RUN_NOT_FOUND, also for a private run of others; BARRED (from a private run).
    """
    run = Run.objects.select_related("organiser").filter(slug=slug).first()
    if run is None or not (run.is_open_to_all or is_inside(viewer, run)):
        raise AppError(ErrorCode.RUN_NOT_FOUND)
    if not run.is_open_to_all and isinstance(viewer, User):
        bar_refuse(run, viewer)
    return run


def run_watchers_allowed(slug: str, user_ids: Collection[int | None]) -> set[int | None]:
    """Return who of these (None: nobody in particular) may see the run, in two queries.

    Each as :func:`run_get_visible` says of them; suspended accounts see nothing.
    """
    run = Run.objects.only("is_public", "state", "organiser_id").filter(slug=slug).first()
    if run is None:
        return set()
    people = User.objects.filter(
        pk__in={pk for pk in user_ids if pk is not None}, is_active=True, banned_at=None
    )
    if run.is_open_to_all:
        return {pk for pk in user_ids if pk is None} | set(people.values_list("pk", flat=True))
    members = RunMember.objects.filter(run=run).values("user")
    inside = Q(is_superuser=True) | Q(is_service=True) | Q(pk=run.organiser_id) | Q(pk__in=members)
    barred = RunBar.objects.filter(run=run).values("user")
    return set(people.filter(inside).exclude(pk__in=barred).values_list("pk", flat=True))


def bar_of(run: Run, user: User) -> RunBar | None:
    """Return the bar that keeps a person out of the run; None when there is none."""
    return RunBar.objects.filter(run=run, user=user).first()


def bar_refuse(run: Run, user: User) -> None:
    """Raise BARRED, with the reason, when the person is barred from the run."""
    bar = bar_of(run, user)
    if bar is not None:
        raise AppError(ErrorCode.BARRED, bar.text)


def device_bar_refuse(run: Run, device: Device) -> None:
    """Raise BARRED, with the reason, when the machine is shut out of the run."""
    bar = RunDeviceBar.objects.filter(run=run, device=device).first()
    if bar is not None:
        raise AppError(ErrorCode.BARRED, bar.text)


@dataclass(frozen=True)
class Barred:
    """Who is shut out of a run, by primary key."""

    users: frozenset[int] = frozenset()
    devices: frozenset[int] = frozenset()


def run_barred(run: Run) -> Barred:
    """Return the accounts and the machines that are shut out of the run, in one query."""
    none = Cast(Value(None), BigIntegerField())
    users = RunBar.objects.filter(run=run).order_by().values_list("user_id", none)
    devices = RunDeviceBar.objects.filter(run=run).order_by().values_list(none, "device_id")
    rows = list(users.union(devices, all=True))
    return Barred(
        users=frozenset(user for user, _ in rows if user is not None),
        devices=frozenset(device for _, device in rows if device is not None),
    )


def run_roles_of(viewer: Viewer, run: Run) -> frozenset[RunRole]:
    """Return what the viewer is to the run; nothing for strangers and suspended accounts."""
    if not isinstance(viewer, User) or viewer.is_banned or not viewer.is_active:
        return frozenset()
    if viewer.is_superuser:
        return frozenset({RunRole.ADMIN})
    roles = {RunRole.STAFF} if viewer.is_staff else set()
    if run.organiser_id == viewer.pk:
        return frozenset({*roles, RunRole.ORGANISER})
    part = run.members.filter(user=viewer).values_list("part", flat=True).first()
    return frozenset({*roles, RunRole(part)} if part else roles)


def run_rights(viewer: Viewer, run: Run) -> frozenset[Right]:
    """Return what the viewer may do with the run."""
    return rights_of(run_roles_of(viewer, run))


def right_require(viewer: Viewer, run: Run, right: Right) -> None:
    """Raise FORBIDDEN, in words, unless the viewer has the right."""
    if right not in run_rights(viewer, run):
        raise AppError(ErrorCode.FORBIDDEN, REFUSALS[right])


def run_is_organised_by(viewer: Viewer, run: Run) -> bool:
    """Whether the viewer may change the run."""
    return Right.ORGANISE in run_rights(viewer, run)


def run_organisers(run: Run) -> list[User]:
    """Return everybody who organises the run, the founder first, then by how long they do."""
    members = run.members.filter(part=RunMember.Part.ORGANISER).exclude(user=run.organiser_id)
    others = members.select_related("user").order_by("joined_at", "pk")
    return [run.organiser, *(member.user for member in others)]


def draft_of(run: Run) -> ConfigDraft | None:
    """Return the run's draft with its last editor, None when nobody writes one."""
    return ConfigDraft.objects.select_related("edited_by").filter(run=run).first()


def draft_is_behind(draft: ConfigDraft | None, newest: RunConfigVersion | None) -> bool:
    """Whether a version was published since the draft was begun."""
    return draft is not None and newest is not None and draft.based_on < newest.version


def artifacts_stored(run: Run, viewer: Viewer) -> list[Artifact]:
    """Return the files to offer for a config, the newest first: the run's own.

    Those are what its versions and its draft name. An admin sees what is stored for all runs.
    """
    found = Artifact.objects.order_by("-id")
    if not (isinstance(viewer, User) and viewer.is_superuser):
        draft = ConfigDraft.objects.filter(run=run).values_list("body__artifacts", flat=True)
        named = run.configs.order_by().values_list("body__artifacts", flat=True).union(draft)
        own = {str(a.get("sha256")) for files in named for a in artifacts_of({"artifacts": files})}
        found = found.filter(sha256__in=own)
    return list(found[:MAX_ARTIFACTS])


def config_newest(run: Run) -> RunConfigVersion | None:
    """Return the newest published config, None before the first."""
    return run.configs.order_by("-version").first()


def configs_last(run: Run, count: int) -> list[RunConfigVersion]:
    """Return the last published configs, the newest first."""
    return list(run.configs.order_by("-version")[:count])


def config_current(run: Run) -> RunConfigVersion:
    """Return the newest published config.

    Raises:
        AppError: CONFIG_MISSING.
    """
    version = config_newest(run)
    if version is None:
        raise AppError(ErrorCode.CONFIG_MISSING)
    return version


def config_previous(version: RunConfigVersion) -> RunConfigVersion | None:
    """Return the version before the given one."""
    return RunConfigVersion.objects.filter(
        run_id=version.run_id, version=version.version - 1
    ).first()


def bootstrap_addresses(
    run: Run, exclude_peer_id: str = "", *, now: datetime | None = None
) -> list[str]:
    """Return addresses at which the swarm can be entered, newest first.

    Older ones are handed out only when none was seen lately: after a restart of the site they
    are better than nothing.
    """
    version = config_newest(run)
    peers = run.bootstrap_peers.filter(lineage=version.lineage if version else 1)
    if exclude_peer_id:
        peers = peers.exclude(address__contains=f"/p2p/{exclude_peer_id}")
    rows = list(peers.order_by("-seen_at", "id").values_list("address", "seen_at")[:MAX_ADDRESSES])
    oldest = (now or timezone.now()) - FRESH
    return [a for a, seen_at in rows if seen_at >= oldest] or [a for a, _ in rows]


def checkpoint_latest(run: Run, lineage: int | None = None) -> Checkpoint | None:
    """Return the newest checkpoint, of one lineage when given."""
    checkpoints = run.checkpoints.order_by("-lineage", "-epoch")
    if lineage is not None:
        checkpoints = checkpoints.filter(lineage=lineage)
    return checkpoints.first()


def lineage_path(run: Run) -> list[tuple[int, int | None]]:
    """Return where the run's model comes from, the newest first: (lineage, its last epoch).

    A lineage that another one began from counts up to the epoch where that one branched off;
    None stands for the present one, which has no end.
    """
    starts: dict[int, dict[str, int] | None] = {}
    for version in run.configs.order_by("version"):
        starts[version.lineage] = version.body.get("start")
    if not starts:
        return []
    lineage = max(starts)
    end: int | None = None
    path = [(lineage, end)]
    while start := starts.get(lineage):
        lineage = start["lineage"]
        end = start["epoch"] if end is None else min(end, start["epoch"])
        path.append((lineage, end))
    return path


def lineage_starts(run: Run) -> dict[int, tuple[int, int]]:
    """Return the state (lineage, epoch) that each lineage went on from, if it did."""
    rows = run.configs.filter(lineage__gt=1).order_by("version")
    found: dict[int, tuple[int, int]] = {}
    for lineage, start in rows.values_list("lineage", "body__start"):
        if start:
            found[lineage] = (start["lineage"], start["epoch"])
    return found


def checkpoint_before(run: Run, epoch: int) -> Checkpoint | None:
    """Return the newest kept state that holds nothing of ``epoch`` or later; None: there is none.

    The state saved as epoch N is the one in which epoch N began.
    """
    for lineage, end in lineage_path(run):
        last = epoch if end is None else min(epoch, end)
        found = run.checkpoints.filter(lineage=lineage, epoch__lte=last).order_by("-epoch").first()
        if found is not None:
            return found
    return None


def _own(viewer: User) -> Q:
    return Q(organiser=viewer) | Q(members__user=viewer)


def is_inside(viewer: Viewer, run: Run) -> bool:
    """Whether the viewer has a part in the run, or serves or runs the site."""
    if not isinstance(viewer, User):
        return False
    if viewer.is_superuser or viewer.is_service or run.organiser_id == viewer.pk:
        return True
    return run.members.filter(user=viewer).exists()
