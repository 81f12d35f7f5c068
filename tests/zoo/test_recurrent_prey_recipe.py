"""Deep Q-learning of prey with memory beside plain computations in NumPy."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from slow_dqn import recurrent_prey_error, wolf_error
from slow_networks import gradient, layers_of
from slow_prey import Board

from dropin.games.wolfpack.recurrent_prey import NUM_FRAMES, unstack
from dropin.games.wolfpack.state import State
from dropin.zoo import dqn
from dropin.zoo.wolfpack_recurrent_prey import RecurrentFleeingPrey, SequenceRow

RECIPE = RecurrentFleeingPrey(
    num_envs=3,
    batch_size=2,
    sequence_length=3,
    replay_rows=20,
    head_start=0,
    discount=0.9,
    prey_discount=0.8,
    learning_rate=1e-3,
    target_update_rate=0.25,
)
LENGTH = NUM_FRAMES + RECIPE.sequence_length


def boards_of(states: State) -> list[Board]:
    """Return states with a leading time axis as lists."""
    return [
        Board(
            hunters=[tuple(cell) for cell in np.asarray(states.hunters)[time].tolist()],
            prey=[tuple(cell) for cell in np.asarray(states.prey)[time].tolist()],
            facing=np.asarray(states.facing)[time].tolist(),
            captured=np.asarray(states.captured)[time].tolist(),
        )
        for time in range(len(states.time))
    ]


def slow_loss(params, target_params, rows: SequenceRow) -> float:
    """Return the loss of one sequence by the slow implementation."""
    boards, times = boards_of(rows.before), np.asarray(rows.before.time)
    prey_rows = list(
        zip(
            boards,
            times,
            np.asarray(rows.prey_action),
            np.asarray(rows.prey_reward, np.float64),
            strict=True,
        )
    )
    total = recurrent_prey_error(unstack(params.prey), unstack(target_params.prey), prey_rows, 0.8)
    wolves, targets = (
        [layers_of(each.wolves, index) for index in range(4)] for each in (params, target_params)
    )
    actions, rewards = np.asarray(rows.wolf_action), np.asarray(rows.wolf_reward, np.float64)
    for step in range(NUM_FRAMES - 1, len(boards) - 1):
        if times[step + 1] > 0:
            before, after = boards[step], boards[step + 1]
            total += wolf_error(wolves, targets, before, after, actions[step], rewards[step], 0.9)
    return total / RECIPE.sequence_length


def random_rows(random, times, captured) -> SequenceRow:
    """Return a sequence of unrelated states."""

    def states() -> State:
        cells = np.stack([random.permutation(100)[:6] for _ in times])
        cells = np.stack([cells // 10, cells % 10], axis=-1)
        return State(
            hunters=jnp.asarray(cells[:, :4], jnp.int32),
            prey=jnp.asarray(cells[:, 4:], jnp.int32),
            facing=jnp.asarray(random.integers(0, 4, (len(times), 2)), jnp.int32),
            captured=jnp.asarray(captured),
            time=jnp.asarray(times, jnp.int32),
            memory=(),
        )

    number = len(times)
    return SequenceRow(
        before=states(),
        after=states(),
        wolf_action=jnp.asarray(random.integers(0, 5, (number, 4)), jnp.int32),
        prey_action=jnp.asarray(random.integers(0, 7, (number, 2)), jnp.int32),
        wolf_reward=jnp.asarray(random.normal(size=(number, 4)), jnp.float32),
        prey_reward=jnp.asarray(random.normal(size=(number, 2)), jnp.float32),
    )


@pytest.mark.parametrize("first_time", [20, -6, -4, -2])
def test_td_loss_of_a_sequence(first_time):
    """Within an episode, and with a new one that starts among its steps or frames."""
    random = np.random.default_rng(5)
    game = RECIPE.make_game()
    params, target_params = (RECIPE.init_params(game, jax.random.key(seed)) for seed in (0, 1))
    times = np.arange(first_time, first_time + LENGTH)
    times = np.where(times < 0, times + 200, times)
    captured = random.uniform(size=(LENGTH, 2)) < 0.3
    rows = random_rows(random, times, captured)
    fast = RECIPE.td_loss(game, params, target_params, rows)
    assert float(fast) == pytest.approx(slow_loss(params, target_params, rows), rel=1e-4)


def test_an_update_goes_down_the_loss_of_sequences_and_the_target_follows():
    """Gradients of the last biases by differences; Adam's first step is as long as its rate."""
    game = RECIPE.make_game()
    state = RECIPE.init(7)
    update = eqx.filter_jit(dqn.update)
    for _ in range(LENGTH):
        state, _ = update(RECIPE, game, state)
    state = replace(
        state,
        # A target of its own, so that it can be told from the weights; no steps of Adam so far.
        target_params=RECIPE.init_params(game, jax.random.key(9)),
        opt_state=RECIPE.optimizer.init(eqx.filter(state.params, eqx.is_array)),
    )
    after, metrics = update(RECIPE, game, state)
    batch = RECIPE.sample(after.replay, jax.random.split(state.key, 3)[2])
    assert batch.before.time.shape == (2, LENGTH)
    assert np.all(np.diff(batch.before.time, axis=1) == 1)
    state, after, batch = jax.device_get((state, after, batch))

    def loss(params) -> float:
        sequences = [jax.tree.map(lambda leaf, k=k: leaf[k], batch) for k in range(2)]
        losses = [slow_loss(params, state.target_params, each) for each in sequences]
        return sum(losses) / len(losses)

    assert float(metrics["loss"].total) == pytest.approx(loss(state.params), rel=1e-4)
    for bias, some in (
        (lambda params: params.prey.readout.bias, slice(0, 7)),
        (lambda params: params.wolves.layers[2].bias, slice(0, 10)),
    ):

        def shifted_loss(row, bias=bias, some=some):
            changed = bias(state.params).astype(np.float64).ravel()
            changed[some] = row
            return loss(eqx.tree_at(bias, state.params, changed.reshape(bias(after.params).shape)))

        start = bias(state.params).astype(np.float64).ravel()
        slope = gradient(shifted_loss, start[some], eps=1e-4)
        taken = np.abs(slope) > 1e-6  # The values of actions that nobody took do not matter.
        assert 0 < taken.sum() < taken.size
        expected = np.where(taken, -1e-3 * np.sign(slope), 0)
        assert (bias(after.params).ravel() - start)[some] == pytest.approx(expected, abs=2e-6)
        followed = 0.25 * bias(after.params) + 0.75 * bias(state.target_params)
        assert bias(after.target_params) == pytest.approx(followed, abs=1e-6)


def test_a_captured_prey_loses_a_point_or_one_for_each_hunter():
    for per_hunter in (False, True):
        recipe = replace(RECIPE, penalty_per_hunter=per_hunter)
        game = recipe.make_game()
        params = recipe.init_params(game, jax.random.key(0))
        start = recipe.reset(game, jax.random.key(1))
        start = replace(
            start,
            hunters=jnp.array([[4, 5], [5, 4], [5, 6], [0, 0]], jnp.int32),
            prey=jnp.array([[5, 5], [9, 9]], jnp.int32),
        )
        seen = set()
        for seed in range(30):
            _, row = recipe.env_step(game, params, jnp.float32(1), start, jax.random.key(seed))
            pack = int(jnp.sum(jnp.abs(row.after.hunters - row.after.prey[:1]).sum(1) == 1))
            penalty = pack if per_hunter else 1
            expected = -penalty if pack > 1 else 0
            assert row.prey_reward.tolist()[0] == expected
            assert bool(row.after.captured[0]) == (pack > 1)
            seen.add(pack)
        assert {2, 3} & seen
        assert {0, 1} & seen
