"""What the apps above are told of runs, inside the transaction of the change itself."""

from django.dispatch import Signal

run_changed = Signal()
"""Sent with ``run``, ``kind`` (dotted, past tense), ``text`` (a line for the events feed)."""
