"""What a service refused stands in the form that was sent, beside what was typed."""

from django import forms

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
