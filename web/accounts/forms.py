"""Forms of allauth with bounds of ours."""

from typing import Any

from allauth.account.forms import LoginForm as AllauthLoginForm
from django.core.validators import MaxLengthValidator

MAX_LOGIN = 320
"""As long as an e-mail address may be; a database gives up on a pattern of 50,000 characters."""
MAX_PASSWORD = 4096


class LoginForm(AllauthLoginForm):
    """Log-in by name or address."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        for name, length in (("login", MAX_LOGIN), ("password", MAX_PASSWORD)):
            self.fields[name].validators.append(MaxLengthValidator(length))
