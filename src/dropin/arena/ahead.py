"""Moments that are computed before they are needed, so that a key press is answered at once."""

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor

from dropin.arena.timeline import AnyPlayable, Shown

__all__ = ["Ahead"]


class _Work:
    """What follows from one moment, for each action of one slot; computed in a thread."""

    def __init__(
        self, simulation: AnyPlayable, moment: Shown, forced: Mapping[int, int], slot: int
    ) -> None:
        self.simulation, self.moment = simulation, moment
        self.forced, self.slot = dict(forced), slot
        self.found: dict[int, Shown] = {}
        self.stopped = False

    def run(self, actions: Sequence[int]) -> None:
        """Compute one action after the other, so that the first ones can be had early."""
        for action in actions:
            if self.stopped:
                return
            forced = {**self.forced, self.slot: action}
            try:
                self.found[action] = self.simulation.step(self.moment, forced)
            except Exception:
                return  # It shows again, and is reported, when the step itself is taken.


class Ahead:
    """What may follow the current moment, by the action of the one person who is waited for.

    Args:
        workers: The threads that compute it.
    """

    def __init__(self, workers: Executor) -> None:
        self._workers = workers
        self._work: _Work | None = None

    def start(
        self,
        simulation: AnyPlayable,
        moment: Shown,
        forced: Mapping[int, int],
        slot: int,
        actions: Sequence[int],
    ) -> None:
        """Start to compute; what was computed before is forgotten.

        Args:
            simulation: What is played.
            moment: The current moment.
            forced: The actions of the other people by slot.
            slot: The slot of the person who has not acted.
            actions: The actions that the person has, the likeliest first.
        """
        work = self._work
        asked = (forced, slot)
        if work is not None and work.moment is moment and (work.forced, work.slot) == asked:
            return
        self.stop()
        self._work = _Work(simulation, moment, forced, slot)
        self._workers.submit(self._work.run, actions)

    def stop(self) -> None:
        """Forget what was computed, and compute no more of it."""
        if self._work is not None:
            self._work.stopped = True
            self._work = None

    def take(self, moment: Shown, forced: Mapping[int, int]) -> Shown | None:
        """Return the moment that follows, or None if it is not there yet.

        Args:
            moment: The current moment.
            forced: The actions of all people by slot.
        """
        work = self._work
        self.stop()
        if work is None or work.moment is not moment or work.slot not in forced:
            return None
        others = {slot: each for slot, each in forced.items() if slot != work.slot}
        return work.found.get(forced[work.slot]) if others == work.forced else None
