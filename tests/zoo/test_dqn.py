"""Deep Q-learning of Wolfpack's prey, wolves and hunters beside plain computations in NumPy."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from slow_dqn import Board, hunter_error, prey_error, wolf_error
from slow_networks import gradient, layers_of
from wolfpack_tables import Table, states

from dropin._xla.random import StepRNG
from dropin.games.wolfpack.state import State
from dropin.zoo import dqn
from dropin.zoo.wolfpack_h6 import RelationalHunter, Transition
from dropin.zoo.wolfpack_prey import FleeingPrey, Networks
from dropin.zoo.wolfpack_prey import Transition as PreyTransition

PREY = FleeingPrey(discount=0.9)


def board_of(state: State, row=()) -> Board:
    """Return a state of the package as lists."""
    return Board(
        hunters=[tuple(cell) for cell in np.asarray(state.hunters)[row].tolist()],
        prey=[tuple(cell) for cell in np.asarray(state.prey)[row].tolist()],
        facing=np.asarray(state.facing)[row].tolist(),
        captured=np.asarray(state.captured)[row].tolist(),
    )


def slow_prey_loss(
    params: Networks, target_params: Networks, transition: PreyTransition, row=(), discount=0.9
) -> float:
    """Return the loss of one transition by the slow implementation."""
    before, after = board_of(transition.before, row), board_of(transition.after, row)
    prey, target_prey, wolves, target_wolves = (
        [layers_of(stacked, index) for index in range(number)]
        for stacked, number in (
            (params.prey, 2),
            (target_params.prey, 2),
            (params.wolves, 4),
            (target_params.wolves, 4),
        )
    )
    prey_actions, wolf_actions, rewards = (
        np.asarray(each)[row]
        for each in (transition.prey_action, transition.wolf_action, transition.wolf_reward)
    )
    return prey_error(prey, target_prey, before, after, prey_actions, discount) + wolf_error(
        wolves, target_wolves, before, after, wolf_actions, rewards, discount
    )


def random_state(random, captured) -> State:
    cells = random.permutation(100)[:6]
    cells = np.stack([cells // 10, cells % 10], axis=1)
    return State(
        hunters=jnp.asarray(cells[:4], jnp.int32),
        prey=jnp.asarray(cells[4:], jnp.int32),
        facing=jnp.asarray(random.integers(0, 4, 2), jnp.int32),
        captured=jnp.asarray(captured),
        time=jnp.int32(3),
        memory=(),
    )


@pytest.mark.parametrize("before", [(False, False), (True, False)])
@pytest.mark.parametrize("after", [(False, False), (False, True)])
def test_td_loss_of_prey_and_wolves(before, after):
    random = np.random.default_rng(5)
    game = PREY.make_game()
    params, target_params = (PREY.init_params(game, jax.random.key(seed)) for seed in (0, 1))
    for _ in range(3):
        transition = PreyTransition(
            before=random_state(random, before),
            after=random_state(random, after),
            wolf_action=jnp.asarray(random.integers(0, 5, 4), jnp.int32),
            prey_action=jnp.asarray(random.integers(0, 7, 2), jnp.int32),
            wolf_reward=jnp.asarray(random.normal(size=4), jnp.float32),
        )
        fast = PREY.td_loss(game, params, target_params, transition)
        slow = slow_prey_loss(params, target_params, transition)
        assert float(fast) == pytest.approx(slow, rel=1e-5)


def test_td_loss_of_hunters():
    """Of those who are present only."""
    random = np.random.default_rng(6)
    recipe = RelationalHunter(discount=0.9)
    q_values, next_q_values = random.normal(size=(2, 1, 5, 5))
    present = np.array([True, False, True, True, False])
    actions, rewards = random.integers(0, 5, 5), random.normal(size=5)
    state = jax.tree.map(lambda leaf: leaf[0], states(jnp.asarray(present)[None]))
    transition = Transition(
        before=state,
        after=state,
        action=jnp.asarray(actions, jnp.int32),
        reward=jnp.asarray(rewards, jnp.float32),
    )
    game = FleeingPrey().make_game()
    fast = recipe.td_loss(game, Table(q_values), Table(next_q_values), transition)
    slow = hunter_error(q_values[0], next_q_values[0], actions, rewards, present, 0.9)
    assert float(fast) == pytest.approx(slow, rel=1e-5)


def test_an_update_goes_down_the_loss_of_a_batch_and_the_target_follows():
    """Gradients of the last biases by differences; Adam's first step is as long as its rate."""
    recipe = replace(PREY, num_envs=3, batch_size=6, replay_rows=4, learning_rate=1e-3)
    recipe = replace(recipe, target_update_rate=0.25)
    game = recipe.make_game()
    state = recipe.init(7)
    # A target of its own, so that it can be told from the weights.
    state = replace(state, target_params=recipe.init_params(game, jax.random.key(9)))
    after, metrics = eqx.filter_jit(dqn.update)(recipe, game, state)
    assert int(after.steps) == 3
    assert int(after.replay.added) == 1
    batch = after.replay.sample(jax.random.split(state.key, 3)[2], recipe.batch_size)
    state, after, batch = jax.device_get((state, after, batch))

    def loss(params):
        rows = range(recipe.batch_size)
        losses = [slow_prey_loss(params, state.target_params, batch, row) for row in rows]
        return sum(losses) / len(losses)

    assert float(metrics["loss"].total) == pytest.approx(loss(state.params), rel=1e-4)
    for bias in (
        lambda params: params.prey.layers[2].bias,
        lambda params: params.wolves.layers[2].bias,
    ):

        def shifted_loss(row, bias=bias):
            changed = row.reshape(bias(state.params).shape)
            return loss(eqx.tree_at(bias, state.params, changed))

        start = bias(state.params).astype(np.float64).ravel()
        slope = gradient(shifted_loss, start, eps=1e-4)
        taken = np.abs(slope) > 1e-6  # The values of actions that nobody took do not matter.
        assert 3 < taken.sum() < taken.size
        expected = np.where(taken, -1e-3 * np.sign(slope), 0)
        assert bias(after.params).ravel() - start == pytest.approx(expected, abs=2e-6)
        followed = 0.25 * bias(after.params) + 0.75 * bias(state.target_params)
        assert bias(after.target_params) == pytest.approx(followed, abs=1e-6)


def test_epsilon_greedy_takes_the_best_action_or_any():
    q_values = jnp.asarray(np.eye(5)[[2, 4]], jnp.float32)
    best = dqn.epsilon_greedy(StepRNG(jax.random.key(0)), q_values, jnp.float32(0))
    assert best.tolist() == [2, 4]

    @jax.jit
    @jax.vmap
    def explore(key):
        return dqn.epsilon_greedy(StepRNG(key), q_values, jnp.float32(0.5))

    drawn = np.asarray(explore(jax.random.split(jax.random.key(1), 4000)))
    for agent, action in enumerate((2, 4)):
        share = np.bincount(drawn[:, agent], minlength=5) / len(drawn)
        expected = np.full(5, 0.1)
        expected[action] += 0.5
        assert share == pytest.approx(expected, abs=0.04)
    assert abs(np.mean((drawn[:, 0] == 2) & (drawn[:, 1] == 4)) - 0.36) < 0.04
