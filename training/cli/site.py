"""Commands that ask a site: ``why`` and ``logout``."""

from contextlib import closing

from training.cli.arguments import Arguments
from training.cli.output import Output
from training.client.address import SiteAddress, run_address_parse, site_address_parse
from training.client.credentials import StoredLogin, given_token_read
from training.client.errors import ClientError, ExitCode
from training.client.http import PlatformClient
from training.client.retry import Retry
from training.client.store import home_open
from training.client.trust import sites_known
from training.protocol.api import WhyOut
from training.protocol.errors import ERRORS, ErrorCode


def why(args: Arguments, out: Output) -> int:
    """Print the chain from heartbeat to ledger and the first broken link."""
    address = run_address_parse(args.url or "")
    login = StoredLogin(home_open(args.home).site(address))
    credentials = given_token_read(args.token_file) or login
    if credentials.access_token() is None:
        code = ErrorCode.NOT_AUTHENTICATED
        raise ClientError(
            code, ERRORS[code].title, ERRORS[code].remedy, exit_code=ExitCode.NOT_ALLOWED
        )
    with closing(PlatformClient(address, credentials=credentials)) as client:
        answer = client.get(f"/runs/{address.slug}/why/", WhyOut)
    marks = {True: "ok  ", False: "FAIL", None: "?   "}
    lines = [f"{marks[link.ok]}  {link.text}" for link in answer.links]
    stop = next((link for link in answer.links if link.ok is not True), None)
    lines.append(stop.remedy if stop else "Nothing is broken: what you compute is counted.")
    out.result(answer.model_dump(mode="json"), lines)
    return 0


def logout(args: Arguments, out: Output) -> int:
    """Revoke the login at the site and delete it here, for one site or for all."""
    home = home_open(args.home)
    if args.url and args.new_key:
        raise ClientError(
            "usage",
            "one key serves all sites, so --new-key needs a logout of all of them",
            "Leave the address out.",
            exit_code=ExitCode.USAGE,
        )
    if args.url:
        addresses = [site_address_parse(args.url)]
    else:
        addresses = [address for address, _ in sites_known(home.root)]
    results = [_logout_one(address, StoredLogin(home.site(address))) for address in addresses]
    lines = [text for _, text in results] or ["You were not logged in anywhere."]
    if args.new_key:
        lines.append(
            "This machine's keys are deleted." if home.keys_forget() else "No key was here."
        )
    out.result([{"site": site, "text": text} for site, text in results], lines)
    return 0


def _logout_one(address: SiteAddress, login: StoredLogin) -> tuple[str, str]:
    try:
        with closing(PlatformClient(address, retry=Retry(0.0))) as client:
            found = login.forget(client)
    except ClientError as error:
        text = f"Logged out here, but {error.detail}: end the login on the page My devices."
        return address.origin, text
    text = f"Logged out of {address.origin}." if found else f"Not logged in at {address.origin}."
    return address.origin, text
