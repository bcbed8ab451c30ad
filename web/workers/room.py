"""Whether a node has room for what somebody wants to launch. Pure."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Of a node; None: no limit."""

    processes: int | None = None
    threads: int | None = None
    memory_mb: int | None = None


@dataclass(frozen=True)
class Use:
    """Processes, CPU threads and MiB of memory that are promised."""

    processes: int = 0
    threads: int = 0
    memory_mb: int = 0

    def __add__(self, other: "Use") -> "Use":
        return Use(
            self.processes + other.processes,
            self.threads + other.threads,
            self.memory_mb + other.memory_mb,
        )


def room_refusal(limits: Limits, used: Use, wanted: Use, *, is_unbounded: bool) -> str:
    """Return why ``wanted`` does not fit beside ``used``; empty when it does.

    Args:
        is_unbounded: one of the wanted processes has no memory limit of its own.
    """
    whole = used + wanted
    for name, limit, used_now, total in (
        ("processes", limits.processes, used.processes, whole.processes),
        ("CPU threads", limits.threads, used.threads, whole.threads),
        ("MiB of memory", limits.memory_mb, used.memory_mb, whole.memory_mb),
    ):
        if limit is not None and total > limit:
            return f"it may have {limit} {name}; {used_now} are taken, {total} would be"
    if limits.memory_mb is not None and is_unbounded:
        return "its memory is limited, so each process needs a memory limit of its own"
    return ""
