"""What a service refused stands in the form that was sent, beside what was typed."""

from collections.abc import Iterator
from contextlib import contextmanager

from django import forms
from django.contrib import messages
from django.http import HttpRequest

from training.protocol.errors import ErrorCode
from web.core.errors import AppError

_TOLD_IN_FORMS = frozenset({ErrorCode.BODY_INVALID, ErrorCode.RUN_OVER})


def form_refused(form: forms.Form, error: AppError) -> None:
    """Add a refusal to the form, at the field that it names if it names one.

    Raises:
        AppError: the given one, when no other entry would help (not allowed, not there).
    """
    if error.code not in _TOLD_IN_FORMS:
        raise error
    name, _, text = error.detail.partition(": ")
    if text and name in form.fields:
        form.add_error(name, text)
    else:
        form.add_error(None, error.detail)


@contextmanager
def refusal_said(request: HttpRequest) -> Iterator[None]:
    """Say on the next page why something did not happen that no form was filled in for.

    Raises:
        AppError: what another entry would not help against (not allowed, not there).
    """
    try:
        yield
    except AppError as error:
        if error.code not in _TOLD_IN_FORMS:
            raise
        messages.error(request, error.detail)
