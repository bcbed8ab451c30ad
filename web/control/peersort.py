"""The order of the desk's table of peers: by columns, or by figures that are in none."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.core.paginator import Page, Paginator
from django.db.models import F, QuerySet

from web.contributions.standing import NEWCOMER, Standing, standings_of
from web.monitoring.live_kept import lives_read
from web.monitoring.models import Peer
from web.runs.models import Run

PER_PAGE: Final = 50
DEFAULT: Final = "-pass"
COLUMNS: Final = {
    "account": "device__user__username",
    "device": "device__name",
    "role": "role",
    "version": "trainer_version",
    "joined": "joined_at",
    "pass": "heartbeat_at",
    "seen": "seen_at",
}
FIGURES: Final = ("rate", "behind", "trust")
"""Of the live state and of the ledger: sorted here, over the peers' ids alone."""
LABELS: Final = {"rate": "Samples/s", "seen": "Last seen"}
DOWN_FIRST: Final = ("rate", "behind")
"""Whoever sorts by these looks for the largest ones."""
WORDS: Final = ("held", "doubted", "new", "proven")


@dataclass(frozen=True)
class LiveFigures:
    """What the live state says of a run's peers."""

    rows: Mapping[str, Mapping[str, Any]]
    epoch: int

    def rate(self, public_id: str) -> float | None:
        """Return its samples per second; None: the live state does not know it."""
        return self.rows[public_id]["samples_per_second"] if public_id in self.rows else None

    def lag(self, public_id: str) -> int | None:
        """Return how many epochs it is behind; None: the live state does not know it."""
        if public_id not in self.rows:
            return None
        return max(0, self.epoch - self.rows[public_id]["epoch"])


def live_figures(run: Run) -> LiveFigures:
    """Return the live figures of a run's peers, in one query."""
    known = lives_read([run]).get(run.pk)
    return LiveFigures(known[1].rows, known[1].figures.epoch) if known else LiveFigures({}, 0)


def sort_of(text: str | None) -> str:
    """Return the sort that an address asks for; the default one for what is unknown."""
    asked = text or DEFAULT
    name = asked.removeprefix("-")
    return asked if name in COLUMNS or name in FIGURES else DEFAULT


def columns_of(sort: str) -> dict[str, dict[str, str]]:
    """Return the columns' heads: what each link asks for, and how it is sorted now."""
    return {name: _column(name, sort) for name in (*COLUMNS, *FIGURES)}


def peers_page_of(
    run: Run, peers: QuerySet[Peer], sort: str, number: str | None, live: LiveFigures
) -> tuple[Page[Any], list[Peer]]:
    """Return the page and its peers, in two queries; by trust in four."""
    name, is_down = sort.removeprefix("-"), sort.startswith("-")
    if name in COLUMNS:
        field = F(COLUMNS[name])
        order = field.desc(nulls_last=True) if is_down else field.asc(nulls_last=True)
        rows = Paginator(peers.order_by(order, "-pk"), PER_PAGE).get_page(number)
        return rows, list(rows.object_list)
    ids = _ids_sorted(peers, _key_of(run, name, live), is_down=is_down)
    page = Paginator(ids, PER_PAGE).get_page(number)
    found = peers.in_bulk(list(page.object_list))
    return page, [found[pk] for pk in page.object_list if pk in found]


def _key_of(run: Run, name: str, live: LiveFigures) -> Callable[[str, int], Any]:
    """Return what tells a peer's figure by its public id and its device."""
    if name == "rate":
        return lambda public_id, _device: live.rate(public_id)
    if name == "behind":
        return lambda public_id, _device: live.lag(public_id)
    standings = standings_of(run)
    return lambda _public_id, device: trust_key(standings.get(device, NEWCOMER))


def _ids_sorted(
    peers: QuerySet[Peer], key: Callable[[str, int], Any], *, is_down: bool
) -> list[int]:
    """Return the peers' ids in order; those without the figure come last either way."""
    rows = peers.order_by("-pk").values_list("pk", "public_id", "device_id")
    keyed = [(key(public_id, device), pk) for pk, public_id, device in rows]
    known = [pair for pair in keyed if pair[0] is not None]
    known.sort(key=lambda pair: pair[0], reverse=is_down)
    return [pk for _, pk in known] + [pk for value, pk in keyed if value is None]


def trust_key(standing: Standing) -> tuple[int, int, int]:
    """Return how far a machine is to be trusted; the larger, the more."""
    return WORDS.index(standing.word), standing.confirmed, -standing.rejected


def _column(name: str, sort: str) -> dict[str, str]:
    now = {name: "ascending", f"-{name}": "descending"}.get(sort, "")
    is_down_next = now == "ascending" or (not now and name in DOWN_FIRST)
    label = LABELS.get(name, name.capitalize())
    return {"name": name, "label": label, "sort": f"-{name}" if is_down_next else name, "now": now}
