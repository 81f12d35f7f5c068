"""Recorded episodes, simulated again and compared with their files."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from dropin.agents import Agent, load_agent
from dropin.arena.config import is_own_policy
from dropin.arena.recording import (
    CHANGE,
    REWIND,
    STATE,
    STEP,
    Recording,
    describe_state,
    describe_step,
    make_header,
    read_recording,
    versions,
)
from dropin.arena.simulation import Moment, Simulation
from dropin.core.config import PlainDict
from dropin.core.errors import InputError

__all__ = ["Replay", "replay"]


@dataclass(frozen=True)
class Replay:
    """A recording that was re-simulated."""

    recording: Recording
    simulation: Simulation
    moments: list[Moment] = field(default_factory=list)
    """The moments of the episode, one per step, as they were in the end."""
    people: list[dict[int, str]] = field(default_factory=list)
    """For each moment who played from there on, by slot."""


def replay(path: str | Path, find_agent: Callable[[str], Agent] = load_agent) -> Replay:
    """Simulate a recorded episode again and compare everything with the file.

    Args:
        path: The file.
        find_agent: Returns the trained agent of an id.

    Returns:
        The moments of the episode.

    Raises:
        InputError: If the file is damaged or incomplete, the agent is another one, or anything that
            is computed differs from what was recorded.
    """
    recording = read_recording(path)
    if not recording.complete:
        raise InputError(
            f"{path} is incomplete: it ends after {len(recording.lines)} lines without a last one."
        )
    found = Replay(recording, _make_simulation(recording, find_agent))
    for line in recording.lines:
        try:
            _replay_line(found, line)
        except InputError:
            raise
        except (KeyError, TypeError, ValueError, IndexError, AttributeError):
            raise InputError(f"{path} is damaged: a line of it makes no sense.") from None
    return found


def _make_simulation(recording: Recording, find_agent: Callable[[str], Agent]) -> Simulation:
    config, header, path = recording.config, recording.header, recording.path
    env = config.make_env()
    agent = None if is_own_policy(env, config.agent) else find_agent(config.agent)
    now = make_header(env, config, header.get("seed", 0), agent)
    if now["agent_checksum"] != header.get("agent_checksum"):
        raise InputError(f"{path} was recorded with other weights of {config.agent!r}.")
    for name, value in now.items():
        if name not in ("versions", "config", "agent_checksum") and header.get(name) != value:
            words = name.replace("_", " ")
            raise InputError(f"{path} was recorded with another {words}: {header.get(name)}.")
    return Simulation(env, config.make_policy(env, agent))


def _replay_line(found: Replay, line: PlainDict) -> None:
    """Do once more what a line says, and compare."""
    simulation, moments, people = found.simulation, found.moments, found.people
    if line["kind"] == REWIND:
        if not 0 <= line["step"] < len(moments):
            raise InputError(f"{found.recording.path} rewinds to a step that it does not have.")
        del moments[line["step"] + 1 :], people[line["step"] + 1 :]
        return
    if line["kind"] == STATE and not moments:
        moments.append(simulation.reset(found.recording.header["seed"]))
        people.append({})
    elif line["kind"] == CHANGE:
        slots = {name: line[name] for name in ("joined", "replaced", "left")}
        moments[-1] = simulation.change(moments[-1], **slots)
        people[-1] = {int(slot): who for slot, who in line["people"].items()}
    elif line["kind"] == STEP:
        forced = {int(slot): action for slot, action in line["forced"].items()}
        moments.append(simulation.step(moments[-1], forced))
        people.append({int(slot): who for slot, who in line["people"].items()})
    else:
        raise InputError(f"{found.recording.path} has a line of kind {line['kind']!r} too many.")
    _compare(found, line)


def _compare(found: Replay, line: PlainDict) -> None:
    """Raise `InputError` if the last moment is not the recorded one."""
    part = describe_step if line["kind"] == STEP else describe_state
    moment = found.moments[-1]
    for name, value in part(found.simulation, moment).items():
        if line.get(name) == value:
            continue
        then, now = found.recording.header["versions"], versions()
        other = [f"{each} {then.get(each)}" for each in now if then.get(each) != now[each]]
        hint = f"; it was recorded with {', '.join(other)}" if other else ""
        raise InputError(
            f"{found.recording.path} differs from its re-simulation at step {moment.step}, in"
            f" {name!r}{hint}."
        )
