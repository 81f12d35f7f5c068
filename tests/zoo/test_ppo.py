"""PPO beside a plain computation in NumPy."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import slow_ppo
from slow_networks import Adam, gradient, softmax

from dropin.games.fortattack.game import FortAttack
from dropin.games.fortattack.learned import FighterNetwork, NetworkInput, OtherAgents
from dropin.models.layers import MLP, Linear
from dropin.zoo import ppo
from dropin.zoo.actor_critic import ActorCritic
from dropin.zoo.fortattack_ppo import idle_type, training_env

TIME, ENVS, FEATURES, ACTIONS = 4, 4, 2, 3
SLOTS = (range(2), range(2, 3))
"""Two agents share the first actor-critic, and one has the second to itself."""
CONFIG = ppo.PPOConfig(
    steps=2 * ENVS * TIME,
    num_envs=ENVS,
    rollout_length=TIME,
    num_epochs=2,
    num_minibatches=2,
    learning_rate=0.02,
    final_learning_rate=0.005,
    discount=0.9,
    gae_lambda=0.8,
    clip_eps=0.2,
    entropy_coef=0.3,
)


class LinearNetwork(FighterNetwork):
    """A network that is linear in the agent's own features, and sees nothing else."""

    weight: jax.Array

    def __init__(self, weight):
        key = jax.random.key(0)
        self.mate = self.opponent = Linear(1, 1, key=key)
        self.decide = MLP([1, 1], key=key)
        self.weight = jnp.asarray(weight, jnp.float32)

    def __call__(self, inputs):
        return inputs.own @ self.weight


class Rollout:
    """A rollout of one actor-critic, as NumPy arrays in which all that can happen does happen."""

    def __init__(self, slots, seed):
        random = np.random.default_rng(seed)
        shape = (TIME, ENVS, len(slots))
        self.slots = slots
        self.actor = random.normal(size=(FEATURES, ACTIONS))
        self.critic = random.normal(size=(FEATURES, 1))
        self.own = random.normal(size=(*shape, FEATURES))
        self.actions = random.integers(0, ACTIONS, shape)
        self.rewards = 3 * random.normal(size=shape)
        self.last_values = random.normal(size=shape[1:])
        self.acted = random.random(shape) < 0.7
        self.not_done = self.acted & (random.random(shape) < 0.8)
        self.not_done[:-1] &= self.acted[1:]
        assert self.not_done[:-1].any()
        assert (self.acted & ~self.not_done)[:-1].any()
        # What seems to happen to an agent that is away must not matter.
        self.rewards[~self.acted] = 50.0
        drawn = [softmax(row) for row in (self.own @ self.actor).reshape(-1, ACTIONS)]
        log_probs = np.log(drawn).reshape(*shape, ACTIONS)
        chosen = np.take_along_axis(log_probs, self.actions[..., None], -1)[..., 0]
        self.log_probs = chosen + random.uniform(-0.5, 0.5, shape)
        ratio = np.exp(chosen - self.log_probs)[self.acted]
        assert (ratio < 0.8).any()
        assert (ratio > 1.2).any()
        assert (abs(ratio - 1) < 0.2).any()

    @property
    def weights(self):
        return np.concatenate([self.actor.ravel(), self.critic.ravel()])

    def outputs(self, weights):
        """Return logits and values with other weights."""
        actor = weights[: self.actor.size].reshape(self.actor.shape)
        critic = weights[self.actor.size :].reshape(self.critic.shape)
        return self.own @ actor, (self.own @ critic)[..., 0]

    def learn_from(self):
        """Return advantages and targets, as constants."""
        _, values = self.outputs(self.weights)
        rows = (self.rewards, values, self.last_values, self.not_done)
        advantages = slow_ppo.advantages(*rows, CONFIG.discount, CONFIG.gae_lambda)
        return advantages, advantages + values

    def loss(self, weights, envs=slice(None)):
        """Return the slow loss and entropy on some of the environments."""
        logits, values = self.outputs(weights)
        advantages, targets = self.learn_from()
        return slow_ppo.loss(
            logits[:, envs],
            values[:, envs],
            self.actions[:, envs],
            self.log_probs[:, envs],
            advantages[:, envs],
            targets[:, envs],
            self.acted[:, envs],
            CONFIG.clip_eps,
            CONFIG.entropy_coef,
        )

    def agents(self):
        """Return the actor-critic of the package."""
        return ActorCritic(LinearNetwork(self.actor), LinearNetwork(self.critic), self.slots)

    def transition(self):
        """Return the rollout as the package has it."""
        shape = (*self.acted.shape, 1)
        others = OtherAgents(jnp.zeros((*shape, 1)), jnp.zeros(shape, bool))
        return ppo.Transition(
            inputs=NetworkInput(jnp.asarray(self.own, jnp.float32), others, others),
            action=jnp.asarray(self.actions, jnp.int32),
            log_prob=jnp.asarray(self.log_probs, jnp.float32),
            reward=jnp.asarray(self.rewards, jnp.float32),
            not_done=jnp.asarray(self.not_done),
            acted=jnp.asarray(self.acted),
        )

    def batch(self):
        """Return what the package learns from."""
        advantages, targets = (jnp.asarray(each, jnp.float32) for each in self.learn_from())
        return ppo.Batch(self.transition(), advantages, targets)


@pytest.fixture(scope="module")
def rollouts():
    return [Rollout(slots, seed) for seed, slots in enumerate(SLOTS)]


def test_advantages(rollouts):
    for rollout in rollouts:
        _, values = rollout.outputs(rollout.weights)
        fast = ppo._calculate_gae(
            CONFIG,
            rollout.transition(),
            jnp.asarray(values, jnp.float32),
            jnp.asarray(rollout.last_values, jnp.float32),
        )
        assert np.asarray(fast) == pytest.approx(rollout.learn_from()[0], abs=1e-4)


def test_loss_and_entropy(rollouts):
    params, batches = [], []
    for rollout in rollouts:
        params.append(rollout.agents())
        batches.append(rollout.batch())
    loss, entropies = ppo._loss_fn(tuple(params), CONFIG, tuple(batches))
    slow_losses, slow_entropies = zip(*(each.loss(each.weights) for each in rollouts), strict=True)
    assert float(loss) == pytest.approx(sum(slow_losses), rel=1e-5)
    assert [float(each) for each in entropies] == pytest.approx(slow_entropies, rel=1e-5)


def test_an_update_takes_a_step_of_adam_on_every_minibatch_of_every_epoch(rollouts):
    """Gradients by differences, clipped, with a learning rate that falls along a cosine."""
    params = tuple(rollout.agents() for rollout in rollouts)
    opt_state = CONFIG.optimizer.init(params)
    batches = tuple(rollout.batch() for rollout in rollouts)
    params, _, entropies = ppo._update_params(CONFIG, params, opt_state, batches)

    sizes = [rollout.weights.size for rollout in rollouts]
    weights = np.concatenate([rollout.weights for rollout in rollouts])
    adam = Adam(CONFIG.learning_rate, CONFIG.final_learning_rate, decay=8, max_norm=0.5)
    seen = []
    for _ in range(CONFIG.num_epochs):
        for envs in (slice(0, 2), slice(2, 4)):

            def parts(weights, envs=envs):
                split = np.split(weights, [sizes[0]])
                return [each.loss(own, envs) for each, own in zip(rollouts, split, strict=True)]

            seen.append([entropy for _, entropy in parts(weights)])
            slope = gradient(lambda x, parts=parts: sum(loss for loss, _ in parts(x)), weights)
            weights = adam.step(weights, slope)
    assert max(adam.norms) > 2 * adam.max_norm

    networks = [network for agents in params for network in (agents.actor, agents.critic)]
    fast = [np.asarray(each.weight).ravel() for each in networks if isinstance(each, LinearNetwork)]
    start = np.concatenate([rollout.weights for rollout in rollouts])
    assert np.abs(weights - start).max() > 0.03
    assert np.concatenate(fast) == pytest.approx(weights, abs=2e-5)
    assert [float(each) for each in entropies] == pytest.approx(np.mean(seen, axis=0), abs=1e-4)


def face_to_face(env_state):
    """Put every attacker in front of a guard, within the reach of both lasers.

    The first episode is near its end.
    """
    game = env_state.game
    x = jnp.tile(jnp.linspace(-0.6, 0.6, 5), 2)[None]
    y = jnp.repeat(jnp.array([0.2, -0.4]), 5)[None]
    placed = [jnp.where(game.present, each, 0.0) for each in (x, y)]
    time = game.time.at[0].set(196)
    return eqx.tree_at(
        lambda state: (state.game.x, state.game.y, state.game.time), env_state, (*placed, time)
    )


def test_a_step_records_what_was_chosen_and_rewards_attackers_for_coming_closer():
    """Beside the log-probabilities in NumPy and the distances in the states."""
    config = ppo.PPOConfig(num_envs=4, rollout_length=12)
    env = training_env([idle_type("guard"), idle_type("attacker", side=1)], config.num_envs)
    params = (
        ActorCritic.init(range(5), jax.random.key(1)),
        ActorCritic.init(range(5, 10), jax.random.key(2)),
    )

    @jax.jit
    def play(env_state, keys):
        def step(env_state, key):
            after, (transitions, done, _) = ppo._env_step(config, env, params, env_state, key)
            plain = ppo.PPOConfig(num_envs=4, approach_bonus=0.0)
            _, (unshaped, _, _) = ppo._env_step(plain, env, params, env_state, key)
            return after, (env_state.game, after, transitions, unshaped, done)

        return jax.lax.scan(step, env_state, keys)[1]

    keys = jax.random.split(jax.random.key(3), config.rollout_length)
    played = play(face_to_face(env.reset(jax.random.key(0))), keys)
    before, after, transitions, unshaped, done = jax.device_get(played)
    for agents, transition in zip(params, transitions, strict=True):
        rows = slice(agents.slots.start, agents.slots.stop)
        inputs = jax.tree.map(jnp.asarray, transition.inputs)
        logits = np.asarray(agents.actor(inputs), np.float64)
        for place in np.ndindex(transition.action.shape):
            chosen = np.log(softmax(logits[place])[transition.action[place]])
            assert abs(transition.log_prob[place] - chosen) < 1e-4
        assert np.array_equal(transition.acted, before.present[:, :, rows])
        same_agent = (after.game.present & ~after.arrived & ~done[..., None])[:, :, rows]
        assert np.array_equal(transition.not_done, same_agent)
    assert done[:, 0].sum() == 1
    shot = [each.acted & ~each.not_done & ~done[..., None] for each in transitions]
    assert all(each.any() for each in shot)

    assert isinstance(env.games, FortAttack)
    half_height = np.asarray(env.games.half_height)[None, :, None]

    def distance(state):
        return np.hypot(state.x, half_height - state.y)[:, :, 5:]

    bonus = [a.reward - b.reward for a, b in zip(transitions, unshaped, strict=True)]
    assert (bonus[0] == 0).all()
    stayed = transitions[1].acted & transitions[1].not_done
    assert stayed.sum() > 100
    closer = distance(before) - distance(after.game)
    assert bonus[1][stayed] == pytest.approx(config.approach_bonus * closer[stayed], abs=1e-4)
    assert (bonus[1][~transitions[1].acted] == 0).all()
