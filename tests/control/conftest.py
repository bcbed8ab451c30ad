"""What tests of the desk begin with."""

import pytest
from django.test import Client

from web.accounts.models import User


@pytest.fixture
def desk(client: Client, alice: User) -> Client:
    client.force_login(alice)
    return client
