import jax
import numpy as np
import pytest

from dropin.adhoc import make
from dropin.errors import InputError
from dropin.players import player
from dropin.render.episode import record


def mean_score(env, name, episodes=20):
    who = player(env, name)
    return np.mean([list(record(env, who, seed))[-1].score for seed in range(episodes)])


def test_a_heuristic_in_the_learners_place_beats_chance():
    env = make("lbf", rules="reference", team_limit=3)
    assert mean_score(env, "H8") > mean_score(env, "random") + 0.5


def test_an_unknown_player_is_refused():
    with pytest.raises(InputError, match="random, H1"):
        player(make("lbf"), "H99")


def test_a_type_keeps_its_sight_for_the_episode():
    env = make("lbf", team_limit=2)
    act = player(env, "H6")
    state, _ = env.reset(jax.random.key(0))
    actions = {int(act(jax.random.key(0), state)) for _ in range(3)}
    assert len(actions) == 1
