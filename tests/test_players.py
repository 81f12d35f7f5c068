import equinox as eqx
import jax
import pytest

from dropin.adhoc import make
from dropin.errors import InputError
from dropin.evaluation.evaluate import run_episodes
from dropin.players import player


@pytest.mark.parametrize("rules", ["paper", pytest.param("reference", marks=pytest.mark.slow)])
def test_a_heuristic_in_the_learners_place_beats_chance(rules):
    env = make("lbf", rules=rules, team_limit=3, types=["H8"])
    heuristic, chance = (
        run_episodes(env, player(env, name), envs=256, episodes=1).mean for name in ("H8", "random")
    )
    assert heuristic > 1.5 * chance > 0


@pytest.mark.slow
def test_a_hunter_in_the_learners_place_beats_chance():
    env = make("wolfpack", types=["H6"], horizon=100)
    hunter, chance = (
        run_episodes(env, player(env, name), envs=32, episodes=1).mean for name in ("H6", "random")
    )
    assert hunter > 5 + chance


def test_an_unknown_player_is_refused():
    with pytest.raises(InputError, match="random, H1"):
        player(make("lbf"), "H99")


def test_a_type_keeps_its_sight_for_the_episode():
    env = make("lbf", team_limit=2)
    who = player(env, "H6")
    state, seen = eqx.filter_jit(env.reset)(jax.random.key(0))
    act = eqx.filter_jit(who.act)
    actions = {int(act(jax.random.key(0), state, seen, who.start(2))[0]) for _ in range(3)}
    assert len(actions) == 1
