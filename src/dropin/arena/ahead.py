"""Moments that are computed before they are needed, so that a key press is answered at once."""

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from functools import partial

from dropin.arena.timeline import Playable, Shown

__all__ = ["Ahead"]


class Ahead:
    """What follows from one moment, for each action of the one person who is waited for.

    Args:
        workers: The threads that compute it.
    """

    def __init__(self, workers: Executor) -> None:
        self._workers = workers
        self._moment: Shown | None = None
        self._forced: Mapping[int, int] = {}
        self._slot = 0
        self._following: asyncio.Future[Sequence[Shown]] | None = None

    def start(
        self, simulation: Playable, moment: Shown, forced: Mapping[int, int], slot: int
    ) -> None:
        """Start to compute; what was computed before is forgotten.

        Args:
            simulation: What is played.
            moment: The current moment.
            forced: The actions of the other people by slot.
            slot: The slot of the person who has not acted.
        """
        if moment is self._moment and (forced, slot) == (self._forced, self._slot):
            return
        self._moment, self._forced, self._slot = moment, dict(forced), slot
        loop = asyncio.get_running_loop()
        compute = partial(simulation.step_each, moment, dict(forced), slot)
        self._following = loop.run_in_executor(self._workers, compute)
        # A failure shows again, and is reported, when the step itself is taken.
        self._following.add_done_callback(lambda done: done.cancelled() or done.exception())

    async def take(self, moment: Shown, forced: Mapping[int, int]) -> Shown | None:
        """Return the moment that follows, or None if it was not computed.

        Args:
            moment: The current moment.
            forced: The actions of all people by slot.
        """
        following, self._following = self._following, None
        before, self._moment = self._moment, None
        if following is None or before is not moment or self._slot not in forced:
            return None
        if {slot: each for slot, each in forced.items() if slot != self._slot} != self._forced:
            return None
        try:
            return (await following)[forced[self._slot]]
        except Exception:
            return None
