"""Recorded episodes as arrays, for analysis and imitation, and as tables in files."""

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from dropin.arena.cells import safe_cell
from dropin.arena.recording import (
    CHANGE,
    REWIND,
    STATE,
    STEP,
    SUFFIX,
    Recording,
    read_recording,
)
from dropin.core.config import PlainDict
from dropin.core.errors import InputError, MissingExtraError
from dropin.core.files import write

__all__ = ["Episode", "export_csv", "export_parquet", "load_episodes"]


@dataclass(frozen=True, eq=False)
class Episode:
    """A recorded episode of T steps as arrays; `[t]` of an array over steps is what was done in
    state t.

    After a rewind only what happened in the end is here.
    """

    path: Path
    header: PlainDict
    """Settings, seed, versions, and the names of actions, features and types."""
    complete: bool
    """Whether the recording was closed; if not, the process that made it was killed."""
    agents: Float[np.ndarray, "state slot feature"]
    """Agent features x of the T + 1 states."""
    shared: Float[np.ndarray, "state shared"]
    """Shared features u."""
    present: Bool[np.ndarray, "state slot"]
    arrived: Bool[np.ndarray, "state slot"]
    """Who was new, people who had taken a place included."""
    types: Int[np.ndarray, "state slot"]
    """Index into `header["types"]`; of no meaning for the learner and for places of people."""
    actions: Int[np.ndarray, "time slot"]
    acted: Bool[np.ndarray, "time slot"]
    """Who was present; the actions of others have no effect."""
    rewards: Float[np.ndarray, "time slot"]
    terminated: Bool[np.ndarray, " time"]
    truncated: Bool[np.ndarray, " time"]
    is_person: Bool[np.ndarray, "time slot"]
    """Whose action was that of a person."""
    is_default: Bool[np.ndarray, "time slot"]
    """Which actions of people were taken because nothing was pressed."""
    people: list[dict[int, str]]
    """For each step who played, by slot."""
    after_ms: Float[np.ndarray, "time slot"]
    """Milliseconds from a state until the key was pressed; NaN where it is not known."""
    latency_ms: Float[np.ndarray, "time slot"]
    """Milliseconds from the key press until the server had it; NaN likewise."""
    chosen: Int[np.ndarray, " state"]
    """What the learner chose, also if a person played in its place."""
    q_values: Float[np.ndarray, "state action"] | None
    """The learner's action values; None if it has none."""
    teammate_probs: Float[np.ndarray, "state slot action"] | None
    """The learner's predictions; None if it makes none. Rows of absent agents have no meaning."""

    def __len__(self) -> int:
        """Return the number of steps."""
        return len(self.actions)


def load_episodes(directory: str | Path) -> list[Episode]:
    """Load the episodes that `dropin arena --record` has written.

    Nothing is simulated; `dropin.arena.replay.replay` checks a file by doing so.

    Args:
        directory: The directory, or a single file. Files in directories below it are included.

    Returns:
        The episodes, in the order of their paths. Those of a process that was killed are not
        `complete`.

    Raises:
        InputError: If there is no such directory, or a file is damaged.
    """
    directory = Path(directory)
    if not directory.exists():
        raise InputError(f"There is no directory {directory}.")
    paths = [directory] if directory.is_file() else sorted(directory.rglob(f"*{SUFFIX}"))
    return [_load(read_recording(path)) for path in paths]


def _load(recording: Recording) -> Episode:
    try:
        states, steps = _final_lines(recording.lines)
        episode = _episode(recording, states, steps)
        _check_names(episode)
        return episode
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError):
        raise InputError(f"{recording.path} is damaged: a line of it makes no sense.") from None


def _final_lines(lines: Sequence[PlainDict]) -> tuple[list[PlainDict], list[PlainDict]]:
    """Return the line of each state as it was in the end, and the line of each step."""
    states: list[PlainDict] = []
    steps: list[PlainDict] = []
    for line in lines:
        if line["kind"] in (STATE, STEP):
            states.append(line)
            steps += [line] if line["kind"] == STEP else []
        elif line["kind"] == CHANGE:
            states[-1] = line
        elif line["kind"] == REWIND:
            if not 0 <= line["step"] < len(states):
                raise ValueError(line["step"])
            del states[line["step"] + 1 :], steps[line["step"] :]
        else:
            raise ValueError(line["kind"])
    return states, steps


def _check_names(episode: Episode) -> None:
    """Raise `ValueError` if an action or a type that tables name has no name, or a person none."""
    acted = episode.acted
    types = acted & ~episode.is_person
    types[:, 0] = False
    for numbers, names in (
        (episode.actions[acted], episode.header["actions"]),
        (episode.types[: len(episode)][types], episode.header["types"]),
    ):
        if ((numbers < 0) | (numbers >= len(names))).any():
            raise ValueError("There is no name for a number.")
    for people in episode.people:
        for slot, person in people.items():
            if not (0 <= slot < acted.shape[1] and isinstance(person, str)):
                raise ValueError(person)


def _episode(recording: Recording, states: list[PlainDict], steps: list[PlainDict]) -> Episode:
    header, slots = recording.header, len(recording.header["sides"])
    features, shared = len(header["agent_features"]), len(header["shared_features"])
    actions = len(header["actions"])

    def stack(lines: list[PlainDict], name: str, dtype: type, *shape: int) -> np.ndarray:
        rows = [line[name] for line in lines]
        return np.array(rows, dtype).reshape(len(rows), *shape)

    def optional(name: str, *shape: int) -> np.ndarray | None:
        missing = any(line[name] is None for line in states)
        return None if missing else stack(states, name, np.float32, *shape)

    def pressed(name: str, dtype: type, default: object) -> np.ndarray:
        table = np.full((len(steps), slots), default, dtype)
        for row, line in zip(table, steps, strict=True):
            for slot, key in line["keys"].items():
                row[int(slot)] = default if key[name] is None else key[name]
        return table

    is_person = np.zeros((len(steps), slots), bool)
    for row, line in zip(is_person, steps, strict=True):
        row[[int(slot) for slot in line["forced"]]] = True
    return Episode(
        path=recording.path,
        header=header,
        complete=recording.complete,
        agents=stack(states, "agents", np.float32, slots, features),
        shared=stack(states, "shared", np.float32, shared),
        present=stack(states, "present", bool, slots),
        arrived=stack(states, "arrived", bool, slots),
        types=stack(states, "types", np.int32, slots),
        actions=stack(steps, "actions", np.int32, slots),
        acted=stack(steps, "acted", bool, slots),
        rewards=stack(steps, "rewards", np.float32, slots),
        terminated=stack(steps, "terminated", bool),
        truncated=stack(steps, "truncated", bool),
        is_person=is_person,
        is_default=pressed("default", bool, False),
        people=[{int(slot): who for slot, who in line["people"].items()} for line in steps],
        after_ms=pressed("after_ms", np.float32, np.nan),
        latency_ms=pressed("latency_ms", np.float32, np.nan),
        chosen=stack(states, "chosen", np.int32),
        q_values=optional("q", actions),
        teammate_probs=optional("probs", slots, actions),
    )


def _rows(episodes: Sequence[Episode]) -> Iterator[dict[str, Any]]:
    """Yield a row of the table for each agent that acted in each step."""
    for number, episode in enumerate(episodes):
        header, config = episode.header, episode.header["config"]
        for step in range(len(episode)):
            for slot in np.flatnonzero(episode.acted[step]).tolist():
                action = int(episode.actions[step, slot])
                probs = None
                if episode.teammate_probs is not None and slot > 0:
                    probs = episode.teammate_probs[step, slot]
                row: dict[str, Any] = {
                    "episode": number,
                    "file": episode.path.name,
                    "game": config["game"],
                    "agent": config["agent"],
                    "seed": header["seed"],
                    "step": step,
                    "slot": slot,
                    "side": header["sides"][slot],
                    "is_person": bool(episode.is_person[step, slot]),
                    "person": episode.people[step].get(slot),
                    "type": None
                    if slot == 0 or episode.is_person[step, slot]
                    else header["types"][episode.types[step, slot]],
                    "arrived": bool(episode.arrived[step, slot]),
                    "action": action,
                    "action_name": header["actions"][action],
                    "reward": float(episode.rewards[step, slot]),
                    "is_default": bool(episode.is_default[step, slot]),
                    "after_ms": _or_none(episode.after_ms[step, slot]),
                    "latency_ms": _or_none(episode.latency_ms[step, slot]),
                    "predicted_action": None if probs is None else int(np.argmax(probs)),
                    "predicted_prob": None if probs is None else float(probs[action]),
                }
                names = (f"feature: {name}" for name in header["agent_features"])
                values = episode.agents[step, slot].tolist()
                yield row | dict(zip(names, values, strict=True))


def _or_none(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _table(episodes: Sequence[Episode]) -> dict[str, list[Any]]:
    """Return the table by columns; an episode of another game has None in unknown columns."""
    rows = list(_rows(episodes))
    names = list(dict.fromkeys(name for row in rows for name in row))
    return {name: [row.get(name) for row in rows] for name in names}


def export_csv(episodes: Sequence[Episode], path: str | Path) -> None:
    """Write episodes as one table: a row for each agent that acted in each step.

    Args:
        episodes: The episodes.
        path: The file; one that exists is replaced.
    """
    table = _table(episodes)
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(map(safe_cell, table))
    writer.writerows(map(safe_cell, row) for row in zip(*table.values(), strict=True))
    write(Path(path), text.getvalue().encode())


def export_parquet(episodes: Sequence[Episode], path: str | Path) -> None:
    """Write the table of `export_csv` as a Parquet file.

    Args:
        episodes: The episodes.
        path: The file; one that exists is replaced.

    Raises:
        MissingExtraError: If the extra `parquet` is not installed.
    """
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtraError("Writing Parquet files", "parquet") from None
    content = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(_table(episodes)), content)
    write(Path(path), content.getvalue())
