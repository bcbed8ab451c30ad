"""Which names people may take (pure)."""

import re

_SHAPE = re.compile(r"^[a-z0-9](?:[a-z0-9_-]{0,28}[a-z0-9])$")

RESERVED = frozenset(
    """
    about abuse account accounts admin administrator all anonymous api auxiliary beeyard billing
    bot contact control coordinator deleted device devices docs everybody everyone guest health
    healthz help home host hostmaster identity info join leaderboard legal login logout mail me
    metrics moderator monitor news nobody none null official operator organiser organizer owner
    peer platform postmaster privacy public readyz register root run runs security service
    settings signup site staff static status support swarm sysadmin system team terms trainer
    undefined unknown unverified user users volunteer webmaster worker ws www you
    """.split()  # noqa: SIM905
)
RESERVED_PREFIXES = ("admin", "beeyard", "coordinator", "service", "site", "trainer", "worker")


def username_shape_ok(name: str) -> bool:
    """Whether a name is 2 to 30 lower-case ASCII letters, digits, ``-`` and ``_``."""
    return bool(_SHAPE.match(name))


def skeleton(name: str) -> str:
    """Return what is left of a name when look-alikes are made equal: ``adm1n`` is ``admln``."""
    text = name.lower().replace("rn", "m").replace("vv", "w")
    return text.translate(str.maketrans("01i5", "olls", "-_."))


_RESERVED_SKELETONS = frozenset(skeleton(name) for name in RESERVED)


def username_is_reserved(name: str) -> bool:
    """Whether a name is, or looks like, one that speaks for the site."""
    first, separator, _ = name.replace("_", "-").partition("-")
    prefixes = {skeleton(prefix) for prefix in RESERVED_PREFIXES}
    return skeleton(name) in _RESERVED_SKELETONS or (
        bool(separator) and skeleton(first) in prefixes
    )
