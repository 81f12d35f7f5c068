"""An episode told in sentences."""

from collections.abc import Iterable

import numpy as np

from dropin.adhoc import AdHoc, EnvState
from dropin.render.episode import Moment
from dropin.render.picture import looks_of


def names_of(env: AdHoc, state: EnvState) -> list[str]:
    """What the story calls the agent in each slot."""
    types = [env.team.pool.names[number] for number in np.asarray(state.cast.type)]
    members = [env.game.members[side] for side in env.sides]
    others = [
        f"{member} {slot} ({name})"
        for slot, (member, name) in enumerate(zip(members, types, strict=True))
    ]
    return ["the learner", *others[1:]]


def story(env: AdHoc, moments: Iterable[Moment]) -> list[str]:
    """Who was there at the start, who entered and left, what happened, how it ended."""
    looks = looks_of(env)
    told: list[str] = []
    before: Moment | None = None
    number = -1
    for number, moment in enumerate(moments):
        here = _with_details(env, moment.state, np.flatnonzero(moment.state.game.present))
        if before is None or before.step is None:
            told.append(f"Start: {_listed(here)}.")
        else:
            names = names_of(env, before.state)
            happened = looks.tell(before.state.game, before.step, names)
            arrived = np.asarray(moment.state.arrived)
            there = np.asarray(moment.state.game.present)
            left = np.flatnonzero(np.asarray(before.step.acted) & (~there | arrived))
            happened += [f"{names[slot]} leaves" for slot in left]
            entered = _with_details(env, moment.state, np.flatnonzero(arrived))
            happened += [f"{name} enters" for name in entered]
            told += [f"Step {number}: {sentence}." for sentence in happened]
        before = moment
    if before is not None:
        told.append(
            f"The episode ends after {number} steps; the learner's return is"
            f" {round(before.score, 2):g}."
        )
    return told


def _with_details(env: AdHoc, state: EnvState, slots: np.ndarray) -> list[str]:
    names, looks = names_of(env, state), looks_of(env)
    return [f"{names[slot]}, {looks.describe(state.game, slot)}" for slot in slots.tolist()]


def _listed(parts: list[str]) -> str:
    return "; ".join(parts)
