"""``beeyard doctor``: checks with remedies."""

from collections.abc import Iterable
from contextlib import closing

from training.cli.arguments import Arguments
from training.cli.output import Output
from training.client.address import site_address_parse
from training.client.entrances import entrances_read
from training.client.errors import ExitCode
from training.client.http import PlatformClient
from training.client.preflight import CheckResult, machine_checks, site_checks
from training.client.reach import bootstrap_check
from training.client.retry import Retry
from training.client.store import home_open

_MARKS = {"error": "FAIL", "warning": "warn", "info": "note"}
_NETWORK = frozenset({"site", "bootstrap"})


def doctor(args: Arguments, out: Output) -> int:
    """Check this machine and, with an address, the site and the last known entrances."""
    home = home_open(args.home)
    checks = machine_checks(home.root, import_all=True)
    if args.url:
        address = site_address_parse(args.url)
        with closing(PlatformClient(address, retry=Retry(0.0))) as client:
            checks += site_checks(client)
        entrances = entrances_read(home.run(address)) if address.slug else ()
        if entrances:
            checks.append(bootstrap_check(entrances))
    out.result([check.as_dict() for check in checks], lines_of(checks))
    return int(verdict(checks))


def verdict(checks: Iterable[CheckResult]) -> ExitCode:
    """Return the exit code for a set of checks."""
    blocking = [check.code for check in checks if check.is_blocking]
    if not blocking:
        return ExitCode.FINE
    return ExitCode.HARDWARE if set(blocking) - _NETWORK else ExitCode.UNREACHABLE


def lines_of(checks: Iterable[CheckResult]) -> list[str]:
    """Return the checks as lines: a mark, the sentence, and the remedy below it."""
    lines = []
    for check in checks:
        mark = (
            "ok  " if check.ok else {"error": "FAIL", "warning": "warn"}.get(check.severity, "note")
        )
        lines.append(f"{mark}  {check.text}")
        if check.remedy:
            lines.append(f"      {check.remedy}")
    return lines
