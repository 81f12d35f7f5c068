import equinox as eqx
import jax
import pytest

from dropin.adhoc import make
from dropin.errors import InputError
from dropin.players import player


@eqx.filter_jit
def mean_reward(env, act, key, envs=256, steps=100):
    """Of a player in many environments at once."""

    def one(key):
        key, first = jax.random.split(key)
        state, _ = env.reset(first)

        def step(state, key):
            acting, key = jax.random.split(key)
            state, time_step = env.step(key, state, act(acting, state))
            return state, time_step.reward

        return jax.lax.scan(step, state, jax.random.split(key, steps))[1].mean()

    return jax.vmap(one)(jax.random.split(key, envs)).mean()


def test_a_heuristic_in_the_learners_place_beats_chance(rules):
    env = make("lbf", rules=rules, team_limit=3)
    heuristic, chance = (
        float(mean_reward(env, player(env, name), jax.random.key(0))) for name in ("H8", "random")
    )
    assert heuristic > 1.5 * chance > 0


def test_an_unknown_player_is_refused():
    with pytest.raises(InputError, match="random, H1"):
        player(make("lbf"), "H99")


def test_a_type_keeps_its_sight_for_the_episode():
    env = make("lbf", team_limit=2)
    act = player(env, "H6")
    state, _ = env.reset(jax.random.key(0))
    actions = {int(act(jax.random.key(0), state)) for _ in range(3)}
    assert len(actions) == 1
