"""What the apps above are told of accounts, inside the transaction of the change itself."""

from django.dispatch import Signal

access_changing = Signal()
"""Sent with ``user`` before the access of an account or of one of its devices changes.

Receivers take the locks that they need for ``access_changed``: rows above are always locked
before rows of accounts, or two transactions could wait for each other.
"""
profile_closed = Signal()
"""Sent with ``user`` once the account's row says that its profile is not public any more; like
``access_changed`` after an ``access_changing``, for the locks."""
access_changed = Signal()
"""Sent with ``user`` once the account's rows say who may do what from now on."""
