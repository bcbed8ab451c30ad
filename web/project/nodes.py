"""A node's own clock: its celery worker asks itself for a look, in its own queue.

Were the site to ask, a node that is gone would find a queue full of old questions.
"""

import logging
from typing import Any

from celery import bootsteps
from kombu.exceptions import OperationalError

logger = logging.getLogger(__name__)


class NodeLooks(bootsteps.StartStopStep):
    """Runs in a worker that consumes its node's queue; others start nothing."""

    requires = ("celery.worker.components:Timer", "celery.worker.components:Pool")

    def __init__(self, parent: Any, **options: Any) -> None:
        self._entry: Any = None
        super().__init__(parent, **options)

    def start(self, parent: Any) -> None:
        """Begin to ask."""
        from django.conf import settings

        from web.workers.nodes import LOOK_SECONDS, node_queue

        queues, mine = parent.app.amqp.queues.consume_from, node_queue(settings.NODE)
        if mine in queues:
            is_home = "default" in queues
            _ask(parent.app, mine, is_home)
            self._entry = parent.timer.call_repeatedly(
                LOOK_SECONDS, _ask, (parent.app, mine, is_home)
            )

    def stop(self, parent: Any) -> None:
        """Ask no more."""
        if self._entry is not None:
            self._entry.cancel()


def _ask(app: Any, queue: str, is_home: bool) -> None:
    """Send the task; one that waited longer than a look is dropped, the next one does its work."""
    from web.workers.nodes import LOOK_SECONDS

    try:
        app.send_task(
            "web.workers.tasks.node_look_task",
            (is_home,),
            queue=queue,
            expires=LOOK_SECONDS,
            retry=False,
            ignore_result=True,
        )
    except (OperationalError, OSError) as error:
        logger.warning("no broker, this node does not look: %s", error)
