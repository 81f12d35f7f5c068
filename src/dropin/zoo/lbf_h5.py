"""H5 of level-based foraging: four agents learn side by side by A2C, and the best is kept."""

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from dropin.adhoc import EnvState, make
from dropin.compilation import compiled
from dropin.evaluation.evaluate import run_episodes
from dropin.models.layers import MLP
from dropin.players import TypePlayer, player
from dropin.teams.lbf.learned import INPUTS, LearnedForager, network, perceive
from dropin.teams.openness import Closed
from dropin.teams.pool import Pool
from dropin.zoo.recipe import Recipe, Score, repeat

AGENTS = 4
ENVS = tuple(
    make("lbf", rules=rules, team_limit=AGENTS, types=["H6"], openness=Closed())
    for rules in ("paper", "reference")
)
"""Closed teams of four; half of the environments under each set of rules."""


class Networks(eqx.Module):
    """Policies and values of the four, side by side in every array."""

    policies: MLP
    values: MLP


class Learning(eqx.Module):
    """Everything that changes."""

    networks: Networks
    optimiser: Any
    states: tuple[EnvState, ...]
    """One entry for each set of rules."""
    score: Float[Array, " agent"]
    """The reward a step of each agent, lately."""
    steps: Int[Array, ""]
    key: PRNGKeyArray


class Lived(eqx.Module):
    """Steps of all environments; leaves are [time, env, agent, ...]."""

    seen: Float[Array, "*n agent input"]
    actions: Int[Array, "*n agent"]
    rewards: Float[Array, "*n agent"]
    goes_on: Float[Array, "*n agent"]
    """Zero at the end of an episode."""


def each(nets: MLP, seen: Float[Array, "*n agent input"]) -> Float[Array, "*n agent output"]:
    """What each agent's own network makes of what it sees."""
    return eqx.filter_vmap(lambda net, rows: net(rows), in_axes=(0, -2), out_axes=-2)(nets, seen)


@dataclass(frozen=True)
class BestOfFour(Recipe):
    """A2C: after every few steps of all environments one step of Adam."""

    name: ClassVar[str] = "lbf/H5"
    about: ClassVar[str] = "a forager that learned from rewards"
    how: ClassVar[str] = "the best of four that learned side by side by A2C, under both rules"

    steps: int = 6_400_000
    envs: int = 128
    """Half of them under each set of rules."""
    period: int = 5
    """Steps of every environment between two updates."""
    learning_rate: float = 1e-3
    last_rate: float = 1e-4
    """The learning rate falls to this at the end."""
    discount: float = 0.99
    entropy: float = 0.01
    """The weight of the entropy of the policies."""
    chunk: int = 200
    """Updates between two reports."""

    @property
    def _adam(self) -> optax.GradientTransformation:
        updates = self.steps // (self.envs * self.period)
        rate = optax.cosine_decay_schedule(
            self.learning_rate, updates, self.last_rate / self.learning_rate
        )
        return optax.flatten(optax.chain(optax.clip_by_global_norm(1.0), optax.adam(rate)))

    def start(self, seed: int) -> Learning:
        """Fresh networks, and a game in each environment."""
        key, one, two, placing = jax.random.split(jax.random.key(seed), 4)
        networks = Networks(
            eqx.filter_vmap(network)(jax.random.split(one, AGENTS)),
            eqx.filter_vmap(lambda key: MLP([INPUTS, 96, 64, 1], key=key))(
                jax.random.split(two, AGENTS)
            ),
        )
        keys = jax.random.split(placing, (len(ENVS), self.envs // len(ENVS)))
        states = tuple(jax.vmap(env.reset)(some)[0] for env, some in zip(ENVS, keys, strict=True))
        return Learning(
            networks=networks,
            optimiser=self._adam.init(eqx.filter(networks, eqx.is_array)),
            states=states,
            score=jnp.zeros(AGENTS),
            steps=jnp.int32(0),
            key=key,
        )

    def weights(self, state: Learning) -> MLP:
        """The policy of the agent that does best."""
        best = int(jnp.argmax(state.score))
        return jax.tree.map(lambda leaf: leaf[best], state.networks.policies)

    def advance(self, state: Learning) -> tuple[Learning, dict[str, Any]]:
        """A chunk of updates."""
        state, (entropy,) = _advance(self, state)
        rewards = {f"reward {k + 1}": value for k, value in enumerate(state.score)}
        return state, {**rewards, "entropy": entropy}

    def scores(self, weights: MLP) -> list[Score]:
        """The returns in the learner's place, beside random ones."""
        rows = []
        for rules in ("paper", "reference"):
            env = make("lbf", rules=rules, types=HEURISTICS)
            learned = TypePlayer(Pool([LearnedForager("H5", "", weights)], env.team.pool.look))
            for who, acts in (("H5", learned), ("random", player(env, "random"))):
                played = run_episodes(env, acts, envs=160, episodes=5)
                rows.append(Score.of(f"return with heuristic teammates, rules {rules}", who,
                                     played.returns))  # fmt: skip
        return rows


HEURISTICS = ("H1", "H2", "H3", "H4", "H6", "H7", "H8", "H9")


def _play(
    recipe: BestOfFour, networks: Networks, states: tuple[EnvState, ...], key: PRNGKeyArray
) -> tuple[tuple[EnvState, ...], Lived]:
    """A few steps of all environments."""

    def step(states: tuple[EnvState, ...], key: PRNGKeyArray) -> tuple[tuple[EnvState, ...], Lived]:
        parts = []
        following = []
        keys = jax.random.split(key, (len(ENVS), 2, recipe.envs // len(ENVS)))
        for env, before, (acting, stepping) in zip(ENVS, states, keys, strict=True):
            seen = jax.vmap(perceive)(before.game)
            logits = each(networks.policies, seen)
            actions = jax.vmap(jax.random.categorical)(acting, logits).astype(jnp.int32)
            after, told = jax.vmap(env.step_all)(stepping, before, actions)
            goes_on = jnp.broadcast_to(~told.done[:, None], told.rewards.shape)
            parts.append(Lived(seen, actions, told.rewards, goes_on.astype(jnp.float32)))
            following.append(after)
        return tuple(following), jax.tree.map(lambda *rows: jnp.concatenate(rows), *parts)

    return jax.lax.scan(step, states, jax.random.split(key, recipe.period))


def _loss(
    networks: Networks, recipe: BestOfFour, lived: Lived, last: Float[Array, "env agent input"]
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """The loss of A2C, added over the agents, and the mean entropy."""
    values = each(networks.values, lived.seen)[..., 0]
    ahead = jax.lax.stop_gradient(each(networks.values, last)[..., 0])

    def before(
        ahead: Float[Array, "env agent"], step: tuple[Array, Array]
    ) -> tuple[Float[Array, "env agent"], Float[Array, "env agent"]]:
        reward, goes_on = step
        worth = reward + recipe.discount * goes_on * ahead
        return worth, worth

    _, worths = jax.lax.scan(before, ahead, (lived.rewards, lived.goes_on), reverse=True)
    gain = worths - values
    likely = jax.nn.log_softmax(each(networks.policies, lived.seen), axis=-1)
    action = lived.actions[..., None] == jnp.arange(likely.shape[-1])[None, None, None]
    chosen = jnp.sum(jnp.where(action, likely, 0.0), axis=-1)
    entropy = jnp.mean(-jnp.sum(jnp.exp(likely) * likely, axis=-1))
    policy = -jnp.mean(chosen * jax.lax.stop_gradient(gain))
    loss = policy + 0.5 * jnp.mean(gain**2) - recipe.entropy * entropy
    return AGENTS * loss, entropy


def _once(recipe: BestOfFour, before: Learning) -> tuple[Learning, tuple[Float[Array, ""]]]:
    """A few steps of every environment and one of the weights; the mean entropy."""
    key, playing = jax.random.split(before.key)
    states, lived = _play(recipe, before.networks, before.states, playing)
    last = jnp.concatenate([jax.vmap(perceive)(some.game) for some in states])
    gradient, entropy = eqx.filter_grad(_loss, has_aux=True)(before.networks, recipe, lived, last)
    with jax.numpy_dtype_promotion("standard"):  # Optax mixes its counter with floats.
        change, optimiser = recipe._adam.update(gradient, before.optimiser)
    reward = jnp.mean(lived.rewards, axis=(0, 1))
    after = Learning(
        networks=eqx.apply_updates(before.networks, change),
        optimiser=optimiser,
        states=states,
        score=0.999 * before.score + 0.001 * reward,
        steps=before.steps + recipe.envs * recipe.period,
        key=key,
    )
    return after, (entropy,)


def _many(recipe: BestOfFour, learning: Learning) -> Any:
    return repeat(partial(_once, recipe), learning, recipe.chunk)


_advance = compiled(_many)
