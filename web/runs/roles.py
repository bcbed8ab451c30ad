"""Who may do what with a run: one table of roles and rights. Pure."""

from enum import StrEnum
from typing import Final


class RunRole(StrEnum):
    """What somebody is to a run. The first three are of the site, the others of the run."""

    ADMIN = "admin"
    """The site's superusers: everything, in every run."""
    STAFF = "staff"
    """The site's staff: look at every desk and at the managed workers, and no more."""
    ORGANISER = "organiser"
    MODERATOR = "moderator"
    VIEWER = "viewer"
    VOLUNTEER = "volunteer"
    """Trains; has no seat at the desk."""


class Right(StrEnum):
    """What an action at the desk asks for."""

    LOOK = "look"
    """Open the run's desk: peers, queue, audit log."""
    ADDRESSES = "addresses"
    """See where peers are reached."""
    WORKERS = "workers"
    """Launch, start and stop managed workers."""
    MODERATE = "moderate"
    """Decide on requests and suspicions; message, rest, quarantine machines; shut out, let in."""
    ORGANISE = "organise"
    """Move the run, publish configs, correct the ledger, undo harm."""
    ROLES = "roles"
    """Give and take roles."""


RIGHTS: Final[dict[RunRole, frozenset[Right]]] = {
    RunRole.ADMIN: frozenset(Right),
    RunRole.STAFF: frozenset({Right.LOOK, Right.ADDRESSES, Right.WORKERS}),
    RunRole.ORGANISER: frozenset(Right),
    RunRole.MODERATOR: frozenset({Right.LOOK, Right.ADDRESSES, Right.MODERATE}),
    RunRole.VIEWER: frozenset({Right.LOOK}),
    RunRole.VOLUNTEER: frozenset(),
}
DESK_PARTS: Final = frozenset({RunRole.ORGANISER, RunRole.MODERATOR, RunRole.VIEWER})
"""Parts in a run that have a seat at its desk."""
ROLE_TEXTS: Final[dict[RunRole, str]] = {
    RunRole.ORGANISER: "Everything: moves, configs, workers, roles, and undoing harm.",
    RunRole.MODERATOR: (
        "Requests to join, suspicions, quarantine, a word or a rest for one machine, "
        "and who is shut out."
    ),
    RunRole.VIEWER: "Looks at the desk and changes nothing; sees no addresses.",
    RunRole.VOLUNTEER: "Sees a private run and may train; has no seat at the desk.",
}
REFUSALS: Final[dict[Right, str]] = {
    Right.LOOK: "Only people with a role in this run may open its desk.",
    Right.ADDRESSES: "Only moderators and organisers of this run may see addresses.",
    Right.WORKERS: "Only organisers of this run and the site's staff may do this.",
    Right.MODERATE: "Only moderators and organisers of this run may do this.",
    Right.ORGANISE: "Only an organiser of this run may do this.",
    Right.ROLES: "Only an organiser of this run may give and take roles.",
}


def rights_of(roles: frozenset[RunRole]) -> frozenset[Right]:
    """Return what somebody with all of these roles may do."""
    return frozenset().union(*(RIGHTS[role] for role in roles))
