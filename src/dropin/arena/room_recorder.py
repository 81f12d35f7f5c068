"""The recordings of a room: a file for each episode, and a recording as something to play."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from dropin.agents import AgentPolicy
from dropin.arena.config import RoomConfig
from dropin.arena.people import Pressed
from dropin.arena.recording import KeyPress, Recorder
from dropin.arena.replay import Replay
from dropin.arena.simulation import Moment, Simulation
from dropin.core.config import PlainMapping

__all__ = ["ReplayedTeam", "RoomRecorder"]


class RoomRecorder:
    """Writes each episode of a room to a file of its own, named after the room.

    An episode in which nothing has happened leaves no file.

    Args:
        directory: Where the files go.
        room: The id of the room.
        about: Plain values to keep in each file.
    """

    def __init__(self, directory: Path, room: str, about: PlainMapping) -> None:
        self.directory, self.room, self.about = directory, room, about
        self._number = 0
        self._recorder: Recorder | None = None
        self._is_empty = True

    def start(self, simulation: Simulation, config: RoomConfig, seed: int, moment: Moment) -> None:
        """Begin an episode.

        Args:
            simulation: What is played.
            config: The config of the room.
            seed: The seed of the episode.
            moment: Its first moment.
        """
        self.finish()
        path = self.directory / f"{self.room}-{self._number:04d}.jsonl"
        self._number, self._is_empty = self._number + 1, True
        policy = simulation.policy
        agent = policy.agent if isinstance(policy, AgentPolicy) else None
        self._recorder = Recorder(
            path, simulation, config, moment, seed, agent=agent, about=self.about
        )

    def change(
        self, moment: Moment, change: Mapping[str, Sequence[int]], people: Mapping[int, str]
    ) -> None:
        """Write that other people play from now on.

        Args:
            moment: The moment in which they play.
            change: The arguments of `Simulation.change`.
            people: The ids of those who play from now on, by slot.
        """
        if self._recorder is not None:
            self._recorder.change(moment, **change, people=people)

    def step(
        self,
        moment: Moment,
        forced: Mapping[int, int],
        people: Mapping[int, str],
        pressed: Mapping[int, Pressed | None],
    ) -> None:
        """Write a step.

        Args:
            moment: The moment after the step.
            forced: The actions of people by slot.
            people: Their ids by slot.
            pressed: When they pressed their keys, by slot; None where nothing was pressed.
        """
        if self._recorder is not None:
            keys = {
                slot: KeyPress(default=True)
                if each is None
                else KeyPress(each.after_ms, each.latency_ms)
                for slot, each in pressed.items()
            }
            self._recorder.step(moment, forced, people=people, keys=keys)
            self._is_empty = False

    def rewind(self, step: int) -> None:
        """Write that the episode goes on from an earlier step."""
        if self._recorder is not None:
            self._recorder.rewind(step)

    def finish(self) -> str | None:
        """Close the file of the episode, if one has begun; return its name."""
        recorder, self._recorder = self._recorder, None
        if recorder is None:
            return None
        recorder.close()
        if self._is_empty:
            recorder.path.unlink()
            return None
        return recorder.path.name


class ReplayedTeam:
    """A recorded episode, which goes on as it went.

    Args:
        found: The recording, simulated again.
    """

    def __init__(self, found: Replay) -> None:
        *moments, last = found.moments
        # An episode may have been broken off; here it ends all the same.
        self.moments = [*moments, replace(last, done=True)]
        self.simulation = found.simulation

    def reset(self, seed: int) -> Moment:
        """Return the first moment."""
        del seed
        return self.moments[0]

    def step(self, moment: Moment, forced: Mapping[int, int]) -> Moment:
        """Return the next moment.

        Args:
            moment: The current one.
            forced: Of no effect: the actions are recorded.
        """
        del forced
        return self.moments[moment.step + 1]

    def change(
        self,
        moment: Moment,
        *,
        joined: Sequence[int] = (),
        replaced: Sequence[int] = (),
        left: Sequence[int] = (),
    ) -> Moment:
        """Return the same moment: what people did is recorded.

        Args:
            moment: The moment.
            joined: Of no effect, as the next two.
            replaced: Of no effect.
            left: Of no effect.
        """
        del joined, replaced, left
        return moment

    def pair_table(self, moment: Moment, a: int, b: int) -> list[list[float]]:
        """Return the pairwise utilities of two agents (Eq. 7).

        Args:
            moment: The moment.
            a: Slot of the one, whose actions are the rows.
            b: Slot of the other.
        """
        return self.simulation.pair_table(moment, a, b)
