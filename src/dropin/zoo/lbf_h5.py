"""H5 of level-based foraging: four agents learn side by side by A2C, and the best one is kept.

Reference:
    Mnih et al. (2016), Asynchronous Methods for Deep Reinforcement Learning, arXiv:1602.01783. A2C
    is the synchronous form of the paper's A3C.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from dropin.core.metrics import Mean
from dropin.core.specs import RULES
from dropin.env import AdHocEnv, EnvState, make
from dropin.evaluation.evaluate import run_episodes
from dropin.games import lbf
from dropin.games.lbf.game import State
from dropin.games.lbf.learned import INPUT_SIZE, LearnedForager, make_network, network_inputs
from dropin.learners.common import apply_gradients, values_of_actions
from dropin.models.layers import MLP
from dropin.policies import RandomPolicy, TypePolicy
from dropin.teams.openness import Closed
from dropin.zoo.recipe import Measurement, Recipe, make_once
from dropin.zoo.updates import ActorCriticConfig, cosine_adam, run_updates

__all__ = ["ActorCritics", "BestOfFour", "TrainState", "Transition", "training_envs", "update"]

NUM_AGENTS = 4
HEURISTICS = ("H1", "H2", "H3", "H4", "H6", "H7", "H8", "H9")
"""The types of teammates with which the result is measured."""

Envs = tuple[AdHocEnv[State], ...]


@make_once
def training_envs() -> Envs:
    """Return an environment for each set of rules, with a closed team of four."""
    return tuple(
        make("lbf", rules=rules, team_limit=NUM_AGENTS, types=["H6"], openness=Closed())
        for rules in RULES
    )


class ActorCritics(eqx.Module):
    """The policy and value networks of all agents, with a leading agent axis."""

    actors: MLP
    critics: MLP

    def logits(self, inputs: Float[Array, "*n agent input"]) -> Float[Array, "*n agent action"]:
        """Return the action logits of each agent, by its own network."""
        return _apply_each(self.actors, inputs)

    def values(self, inputs: Float[Array, "*n agent input"]) -> Float[Array, "*n agent"]:
        """Return the value for each agent, by its own network."""
        return _apply_each(self.critics, inputs)[..., 0]


def _apply_each(
    networks: MLP, inputs: Float[Array, "*n agent input"]
) -> Float[Array, "*n agent output"]:
    apply = eqx.filter_vmap(lambda network, rows: network(rows), in_axes=(0, -2), out_axes=-2)
    return apply(networks, inputs)


class Transition(eqx.Module):
    """One step of all environments; in a rollout the leading axes are [time, env, agent]."""

    inputs: Float[Array, "*n agent input"]
    """What each agent saw, as the networks get it."""
    action: Int[Array, "*n agent"]
    reward: Float[Array, "*n agent"]
    not_done: Float[Array, "*n agent"]
    """0 if the episode ended with this step, else 1."""


class TrainState(eqx.Module):
    """Everything that changes from one update to the next."""

    params: ActorCritics
    opt_state: PyTree
    env_states: tuple[EnvState[State], ...]
    """One entry per set of rules, each with a leading env axis."""
    mean_reward: Float[Array, " agent"]
    """The reward of a step of each agent, as an exponential moving average."""
    steps: Int[Array, ""]
    """Environment steps so far, all environments together."""
    key: PRNGKeyArray


@dataclass(frozen=True)
class BestOfFour(ActorCriticConfig, Recipe[TrainState, MLP]):
    """A2C of four agents in one team, each with networks of its own."""

    name: ClassVar[str] = "lbf/H5"
    summary: ClassVar[str] = "a forager that learned from rewards"
    method: ClassVar[str] = "the best of four that learned side by side by A2C, under both rules"
    game: ClassVar[ModuleType] = lbf

    steps: int = 6_400_000
    num_envs: int = 128
    """Parallel environments, half of them under each set of rules."""
    rollout_length: int = 5
    """Steps of every environment between two updates."""
    updates_per_chunk: int = 200
    """Updates between two reports."""

    @property
    def optimizer(self) -> optax.GradientTransformation:
        """Adam with clipped gradients and a learning rate that decays along a cosine."""
        num_updates = self.steps // (self.num_envs * self.rollout_length)
        return cosine_adam(self.learning_rate, self.final_learning_rate, num_updates, 1.0)

    def init(self, seed: int) -> TrainState:
        """Initialise the networks and start an episode in every environment."""
        key, actor_key, critic_key, reset_key = jax.random.split(jax.random.key(seed), 4)
        params = ActorCritics(
            eqx.filter_vmap(make_network)(jax.random.split(actor_key, NUM_AGENTS)),
            eqx.filter_vmap(lambda key: MLP([INPUT_SIZE, 96, 64, 1], key=key))(
                jax.random.split(critic_key, NUM_AGENTS)
            ),
        )
        envs = training_envs()
        keys = jax.random.split(reset_key, (len(envs), self.num_envs // len(envs)))
        return TrainState(
            params=params,
            opt_state=self.optimizer.init(eqx.filter(params, eqx.is_array)),
            env_states=tuple(
                jax.vmap(env.reset)(env_keys)[0] for env, env_keys in zip(envs, keys, strict=True)
            ),
            mean_reward=jnp.zeros(NUM_AGENTS),
            steps=jnp.int32(0),
            key=key,
        )

    def train_chunk(self, state: TrainState) -> tuple[TrainState, Mapping[str, Float[Array, ""]]]:
        """Run a chunk of updates."""
        state, metrics = run_updates(update, self.updates_per_chunk, state, self, training_envs())
        rewards = {f"reward {number}": each for number, each in enumerate(state.mean_reward, 1)}
        return state, {**rewards, **metrics}

    def policy_params(self, state: TrainState) -> MLP:
        """Return the policy of the agent with the highest reward lately."""
        best = int(jnp.argmax(state.mean_reward))
        return jax.tree.map(lambda leaf: leaf[best], state.params.actors)

    def measure(self, params: MLP) -> list[Measurement]:
        """Measure the returns in the learner's place, beside those of random actions."""
        measurements = []
        for rules in RULES:
            env = make("lbf", rules=rules, types=HEURISTICS)
            learned = TypePolicy(LearnedForager("H5", "", params), env.team.pool.observer)
            for name, policy in (("H5", learned), ("random", RandomPolicy())):
                returns = run_episodes(env, policy, num_envs=160, episodes=5).returns
                quantity = f"return with heuristic teammates, rules {rules}"
                measurements.append(Measurement.from_values(quantity, name, returns))
        return measurements


def update(config: BestOfFour, envs: Envs, state: TrainState) -> tuple[TrainState, dict[str, Mean]]:
    """Collect a rollout and take one optimiser step on it.

    Args:
        config: The settings.
        envs: An environment for each set of rules.
        state: The train state.

    Returns:
        The train state after the update, and the mean entropy of the policies.
    """
    key, rollout_key = jax.random.split(state.key)
    step = partial(_env_step, config, envs, state.params)
    step_keys = jax.random.split(rollout_key, config.rollout_length)
    env_states, rollout = jax.lax.scan(step, state.env_states, step_keys)
    last_inputs = jnp.concatenate([jax.vmap(network_inputs)(each.game) for each in env_states])
    gradients, entropy = eqx.filter_grad(_loss_fn, has_aux=True)(
        state.params, config, rollout, last_inputs
    )
    params, opt_state = apply_gradients(config.optimizer, state.params, state.opt_state, gradients)
    after = TrainState(
        params=params,
        opt_state=opt_state,
        env_states=env_states,
        mean_reward=0.999 * state.mean_reward + 0.001 * jnp.mean(rollout.reward, axis=(0, 1)),
        steps=state.steps + config.num_envs * config.rollout_length,
        key=key,
    )
    return after, {"entropy": Mean.of(entropy)}


def _env_step(
    config: BestOfFour,
    envs: Envs,
    params: ActorCritics,
    env_states: tuple[EnvState[State], ...],
    key: PRNGKeyArray,
) -> tuple[tuple[EnvState[State], ...], Transition]:
    """Take one step in all environments."""
    after, transitions = [], []
    keys = jax.random.split(key, (len(envs), 2, config.num_envs // len(envs)))
    for env, env_state, (sample_keys, step_keys) in zip(envs, env_states, keys, strict=True):
        inputs = jax.vmap(network_inputs)(env_state.game)
        action = jax.vmap(jax.random.categorical)(sample_keys, params.logits(inputs))
        action = action.astype(jnp.int32)
        next_state, step = jax.vmap(env.step_all)(step_keys, env_state, action)
        not_done = jnp.broadcast_to(~step.done[:, None], step.rewards.shape).astype(jnp.float32)
        transitions.append(Transition(inputs, action, step.rewards, not_done))
        after.append(next_state)
    return tuple(after), jax.tree.map(lambda *rows: jnp.concatenate(rows), *transitions)


def _calculate_returns(
    config: BestOfFour, rollout: Transition, last_value: Float[Array, "env agent"]
) -> Float[Array, "time env agent"]:
    """Return the discounted rewards from each step to the end of the rollout, and what follows.

    Args:
        config: The settings.
        rollout: The rollout.
        last_value: The value of what each agent sees after the rollout.
    """

    def backwards(
        following: Float[Array, "env agent"], step: tuple[Array, Array]
    ) -> tuple[Float[Array, "env agent"], Float[Array, "env agent"]]:
        reward, not_done = step
        target = reward + config.discount * not_done * following
        return target, target

    return jax.lax.scan(backwards, last_value, (rollout.reward, rollout.not_done), reverse=True)[1]


def _loss_fn(
    params: ActorCritics,
    config: BestOfFour,
    rollout: Transition,
    last_inputs: Float[Array, "env agent input"],
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Return the loss of A2C, added over the agents, and the mean entropy of the policies."""
    values = params.values(rollout.inputs)
    last_value = jax.lax.stop_gradient(params.values(last_inputs))
    advantages = _calculate_returns(config, rollout, last_value) - values
    log_probs = jax.nn.log_softmax(params.logits(rollout.inputs), axis=-1)
    log_prob = values_of_actions(log_probs, rollout.action)
    actor_loss = -jnp.mean(log_prob * jax.lax.stop_gradient(advantages))
    critic_loss = jnp.mean(advantages**2)
    entropy = jnp.mean(-jnp.sum(jnp.exp(log_probs) * log_probs, axis=-1))
    loss = actor_loss + 0.5 * critic_loss - config.entropy_coef * entropy
    return NUM_AGENTS * loss, entropy
