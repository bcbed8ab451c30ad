"""Pinned keys: the first contact decides, later keys need a trusted one's word."""

from datetime import UTC, datetime, timedelta

import pytest
from joserfc.jwk import OKPKey

from tests.client.stand_in_site import Answer, StandInSite
from training.client.errors import UNEXPECTED, ClientError
from training.client.join import Joiner
from training.client.store import Home
from training.client.trust import Trust, sites_known, trust_extend, trust_read
from training.protocol.claims import KeyVouch
from training.protocol.envelope import sign
from training.protocol.keys import key_generate, public_jwk
from training.protocol.names import TYP_KEY, TYP_PASS

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def vouch(
    by: OKPKey, new: OKPKey, *, typ: str = TYP_KEY, lifetime: timedelta = timedelta(days=1)
) -> str:
    body = KeyVouch(jwk=public_jwk(new))
    return sign(body, typ=typ, key=by, issuer="http://site", lifetime=lifetime, now=NOW)


def names(keys: tuple[OKPKey, ...]) -> set[str]:
    return {key.thumbprint() for key in keys}


def test_the_first_contact_pins_what_the_site_publishes(
    site: StandInSite, joiner: Joiner, home: Home
) -> None:
    trust = joiner.trust_update()
    assert trust.is_first
    assert names(trust.keys) == names(tuple(site.keys))
    ((address, folder),) = sites_known(home.root)
    assert address.origin == site.origin
    kept = trust_read(folder)
    assert kept is not None
    assert names(kept.keys) == names(trust.keys)


def test_a_vouched_key_is_accepted_and_signs_from_then_on(
    site: StandInSite, joiner: Joiner
) -> None:
    joiner.join()
    site.rotate(vouch=True)
    assert joiner.join().config.key_id == site.keys[0].thumbprint()


def test_a_key_that_nobody_vouches_for_is_refused_even_beside_a_trusted_one(
    site: StandInSite, joiner: Joiner
) -> None:
    joiner.join()
    site.rotate(vouch=False)
    with pytest.raises(ClientError, match="unknown kid"):
        joiner.join()


def test_trust_goes_through_a_chain_whose_first_link_is_pinned() -> None:
    first, second, third = key_generate(), key_generate(), key_generate()
    published = [(third, vouch(second, third)), (second, vouch(first, second))]
    trust = trust_extend(Trust((first,)), published, now=NOW)
    assert names(trust.keys) == names((second, third))
    assert names(trust.retired) == names((first,))


def test_a_retired_key_can_vouch_no_more() -> None:
    first, second, third = key_generate(), key_generate(), key_generate()
    pinned = Trust((second,), retired=(first,))
    trust = trust_extend(pinned, [(second, ""), (third, vouch(first, third))], now=NOW)
    assert names(trust.keys) == names((second,))


def test_a_site_that_publishes_only_strange_keys_does_not_make_us_forget() -> None:
    pinned = Trust((key_generate(),))
    stranger = key_generate()
    published = [(stranger, vouch(stranger, stranger)), (key_generate(), "garbage")]
    assert trust_extend(pinned, published, now=NOW) is pinned


def test_a_word_for_another_key_of_another_kind_or_expired_counts_nothing() -> None:
    pinned, new, other = key_generate(), key_generate(), key_generate()
    words = [
        vouch(pinned, other),
        vouch(pinned, new, typ=TYP_PASS),
        vouch(pinned, new, lifetime=timedelta(seconds=-1)),
    ]
    for word in words:
        trust = trust_extend(Trust((pinned,)), [(pinned, ""), (new, word)], now=NOW)
        assert names(trust.keys) == names((pinned,))


@pytest.mark.parametrize("body", [{"keys": []}, {"keys": [{"kty": "RSA"}]}, [], {"keys": 3}, None])
def test_a_site_without_usable_keys_is_told(
    site: StandInSite, joiner: Joiner, body: object
) -> None:
    site.overrides["/api/v1/keys/"] = lambda call: Answer(200, body)
    with pytest.raises(ClientError) as caught:
        joiner.join()
    assert caught.value.code == UNEXPECTED


def test_a_damaged_pin_file_is_never_taken_for_first_contact(
    site: StandInSite, joiner: Joiner, home: Home
) -> None:
    joiner.join()
    path = home.site(joiner.client.address) / "keys.json"
    for content in ("", "{", '{"keys": []}', '{"keys": [{"kty": "oct"}]}'):
        path.write_text(content)
        with pytest.raises(ClientError) as caught:
            joiner.join()
        assert caught.value.code == "home_unusable"
        assert str(path) in caught.value.remedy
