"""The thread in which a world behind a service carries out its orders."""

from __future__ import annotations

import logging
import threading

_log = logging.getLogger(__name__)


class WorldThread(threading.Thread):
    """A thread that keeps the error that ended it: a service whose world has ended must end, not wait for reports."""

    failure: Exception | None = None

    def run(self) -> None:
        """Run the target; log and keep an error that it did not expect."""
        try:
            super().run()
        except Exception as error:
            _log.exception("the %s has failed", self.name)
            self.failure = error
