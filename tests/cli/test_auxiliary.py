"""``beeyard join --role auxiliary``."""

from tests.cli.conftest import Beeyard
from tests.client.stand_in_site import SLUG, StandInSite
from training.client.errors import ExitCode


def test_an_auxiliary_peer_joins_with_its_role_and_must_let_others_in(
    site: StandInSite, beeyard: Beeyard, token_file: str
) -> None:
    words = ("join", site.run_url, "--token-file", token_file, "--role", "auxiliary")
    refused = beeyard(*words, "--client-mode")
    assert refused.code == ExitCode.USAGE
    assert "lets nobody in" in refused.err
    assert site.calls == [], "nobody was asked"
    assert beeyard(*words).code == 0
    path = f"/api/v1/runs/{SLUG}/join/"
    (join,) = [call for call in site.calls if call.path == path]
    assert join.body["role"] == "auxiliary"
    (session,) = beeyard.sessions
    assert session.assists
