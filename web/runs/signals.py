"""What the apps above are told of runs, inside the transaction of the change itself."""

from django.dispatch import Signal

run_bars_changed = Signal()
"""Sent with ``run`` (its row is locked) when somebody was barred from it or let in again."""
run_changed = Signal()
"""Sent with ``run``, ``kind`` (dotted, past tense), ``text`` (a line for the events feed)."""
run_created = Signal()
"""Sent with ``run`` when somebody has made it, before its audit row."""
