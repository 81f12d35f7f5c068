"""Proximal policy optimisation for the fighters of FortAttack.

Agents of a squad share one network for their policy and one for their value. There can be a squad
on each side, which is self-play; whoever is in no squad acts by a type of the pool. A life ends
with a shot: what happens while an agent is away is not its own doing.
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from dropin.adhoc import AdHoc, EnvState
from dropin.compilation import compiled
from dropin.dice import Dice
from dropin.games.fortattack.game import FortAttack
from dropin.teams.fortattack.learned import FighterNet, Seen, perceive
from dropin.teams.fortattack.view import View
from dropin.zoo.recipe import Recipe, repeat

SLOTS = 5
"""Of each side."""
KINDS = (("paper", 3), ("reference", 3), ("paper", 5), ("reference", 5))
"""The rules and team limits that are trained under, in equal shares."""


class Squad(eqx.Module):
    """Agents in neighbouring slots that learn together."""

    policy: FighterNet
    value: FighterNet
    first: int = eqx.field(static=True)
    number: int = eqx.field(static=True)

    @classmethod
    def fresh(cls, first: int, number: int, key: PRNGKeyArray) -> "Squad":
        """With new networks."""
        one, two = jax.random.split(key)
        return cls(FighterNet(key=one), FighterNet(1, key=two), first, number)

    def rows(self, tree: Any, axis: int = 1) -> Any:
        """The slots of the squad, in arrays with a slot axis."""
        return jax.tree.map(
            lambda leaf: jax.lax.slice_in_dim(
                leaf, self.first, self.first + self.number, axis=axis
            ),
            tree,
        )

    def perceive(self, views: View, sides: tuple[int, ...]) -> Seen:
        """What the networks of the squad get of the views of all agents [arena, slot]."""
        see = partial(perceive, sides=sides, side=sides[self.first])
        return jax.vmap(jax.vmap(see))(self.rows(views))


class Arenas(eqx.Module):
    """Environments that differ in what is not a shape: the plane, the team limit."""

    env: AdHoc
    games: FortAttack
    limits: Int[Array, " arena"]

    @classmethod
    def of(cls, envs: Sequence[AdHoc], number: int) -> "Arenas":
        """So many environments, of each kind in turn; pool and openness are those of the first."""
        kinds = [envs[k % len(envs)] for k in range(number)]
        games = jax.tree.map(lambda *leaves: jnp.stack(leaves), *[each.game for each in kinds])
        return cls(envs[0], games, jnp.stack([each.team.limit for each in kinds]))

    def __getitem__(self, one: tuple[FortAttack, Int[Array, ""]]) -> AdHoc:
        """The environment with this game and limit."""
        game, limit = one
        return eqx.tree_at(
            lambda env: (env.game, env.team.pool.look.game, env.team.limit),
            self.env,
            (game, game, limit),
        )

    def reset(self, key: PRNGKeyArray) -> EnvState:
        """All at the start of an episode."""
        keys = jax.random.split(key, len(self.limits))
        return jax.vmap(lambda one, key: self[one].reset(key)[0])((self.games, self.limits), keys)

    def look(self, states: EnvState, key: PRNGKeyArray) -> View:
        """The views of all agents: [arena, slot]."""
        keys = jax.random.split(key, len(self.limits))

        def one(which: Any, state: EnvState, key: PRNGKeyArray) -> View:
            look = self[which].team.pool.look
            return look(Dice(key), state.game, state.cast.character)

        return jax.vmap(one)((self.games, self.limits), states, keys)


class Learning(eqx.Module):
    """Everything that changes."""

    squads: tuple[Squad, ...]
    optimiser: Any
    states: EnvState
    steps: Int[Array, ""]
    key: PRNGKeyArray


class Lived(eqx.Module):
    """Steps of a squad; leaves are [time, arena, agent, ...]."""

    seen: Seen
    actions: Int[Array, "*n agent"]
    likely: Float[Array, "*n agent"]
    """The log-probability of the action when it was chosen."""
    rewards: Float[Array, "*n agent"]
    goes_on: Bool[Array, "*n agent"]
    """Whether the agent was still there afterwards."""
    acted: Bool[Array, "*n agent"]


@dataclass(frozen=True)
class PPO(Recipe):
    """After some steps of all arenas a few passes over them, in parts."""

    steps: int = 10_000_000
    arenas: int = 64
    period: int = 32
    """Steps of every arena between two updates."""
    passes: int = 2
    parts: int = 4
    learning_rate: float = 1e-3
    last_rate: float = 1e-4
    """The learning rate falls to this at the end."""
    discount: float = 0.99
    trace: float = 0.95
    """lambda of the advantages."""
    clip: float = 0.2
    entropy: float = 0.01
    lure: float = 2.0
    """Extra reward of attackers for each unit that they get closer to the fort."""
    chunk: int = 4
    """Updates between two reports."""

    @property
    def per_update(self) -> int:
        """Steps of all arenas together between two updates."""
        return self.arenas * self.period

    @property
    def adam(self) -> optax.GradientTransformation:
        """Adam with a rate that falls, over all weights in one array."""
        updates = self.passes * self.parts * (self.steps // self.per_update)
        rate = optax.cosine_decay_schedule(
            self.learning_rate, updates, self.last_rate / self.learning_rate
        )
        return optax.flatten(optax.chain(optax.clip_by_global_norm(0.5), optax.adam(rate)))

    def begin(self, squads: tuple[Squad, ...], key: PRNGKeyArray) -> Learning:
        """These squads before their first update."""
        key, placing = jax.random.split(key)
        return Learning(
            squads=squads,
            optimiser=self.adam.init(eqx.filter(squads, eqx.is_array)),
            states=eqx.filter_jit(Arenas.reset)(self.field(), placing),
            steps=jnp.int32(0),
            key=key,
        )

    @abstractmethod
    def field(self) -> Arenas:
        """Where it is trained."""

    def train(self, state: Learning) -> tuple[Learning, dict[str, Any]]:
        """A chunk of updates."""
        state, told = _advance(self, self.field(), state)
        rewards, entropies, falls = told
        named = {f"reward {k + 1}": value for k, value in enumerate(rewards)}
        named |= {f"entropy {k + 1}": value for k, value in enumerate(entropies)}
        return state, {**named, "forts fallen": falls}


def _play(
    recipe: PPO, field: Arenas, learning: Learning, key: PRNGKeyArray
) -> tuple[EnvState, tuple[Lived, ...], Float[Array, ""]]:
    """Some steps of all arenas; and the share of the episodes that ended with the fort's fall."""
    everybody = sum(squad.number for squad in learning.squads) == field.env.slots

    def step(states: EnvState, key: PRNGKeyArray) -> tuple[EnvState, Any]:
        looking, choosing, others, stepping = jax.random.split(key, 4)
        views = field.look(states, looking)
        seen = [squad.perceive(views, field.env.sides) for squad in learning.squads]
        keys = jax.random.split(stepping, recipe.arenas)
        if everybody:
            actions = jnp.zeros((recipe.arenas, field.env.slots), jnp.int32)
        else:
            more = jax.random.split(others, recipe.arenas)
            actions, states = jax.vmap(partial(_types_act, field))(
                (field.games, field.limits), states, more
            )
        chosen = []
        for squad, own, one in zip(
            learning.squads, seen, jax.random.split(choosing, len(learning.squads)), strict=True
        ):
            logits = squad.policy(own)
            drawn = jax.random.categorical(one, logits).astype(jnp.int32)
            chosen.append((drawn, _of(jax.nn.log_softmax(logits), drawn)))
            actions = jax.lax.dynamic_update_slice_in_dim(actions, drawn, squad.first, axis=1)

        def advance(
            which: Any, key: PRNGKeyArray, state: EnvState, actions: Array
        ) -> tuple[EnvState, Any, Array]:
            env, game = field[which], which[0]
            after, told = env.step_all(key, state, actions)
            x, y = told.final.agents[:, 0], told.final.agents[:, 1]
            gain = game.to_fort(state.game) - jnp.hypot(x, game.half_height - y)
            return after, told, jnp.where(state.game.attacker, gain, 0.0)

        states, told, gain = jax.vmap(advance)((field.games, field.limits), keys, states, actions)
        still = told.final.present & ~told.final.arrived
        rewards = told.rewards + recipe.lure * jnp.where(still & told.acted, gain, 0.0)
        here = still & ~told.done[:, None]
        lived = tuple(
            Lived(own, drawn, likely, *squad.rows((rewards, here, told.acted)))
            for squad, own, (drawn, likely) in zip(learning.squads, seen, chosen, strict=True)
        )
        return states, (lived, told.done, told.happened.fallen)

    states, (lived, done, fallen) = jax.lax.scan(
        step, learning.states, jax.random.split(key, recipe.period)
    )
    falls = jnp.sum(fallen, dtype=jnp.float32) / jnp.maximum(jnp.sum(done, dtype=jnp.float32), 1.0)
    return states, lived, falls


def _types_act(
    field: Arenas, which: Any, state: EnvState, key: PRNGKeyArray
) -> tuple[Int[Array, " slot"], EnvState]:
    pool = field[which].team.pool
    actions, cast = pool.act(Dice(key), state.cast, state.game, state.arrived)
    return actions, eqx.tree_at(lambda state: state.cast, state, cast)


def _of(rows: Float[Array, "*n action"], action: Int[Array, "*n"]) -> Float[Array, "*n"]:
    """The entry of each row that belongs to the action."""
    number = jnp.arange(rows.shape[-1])
    chosen = action[..., None] == jnp.expand_dims(number, range(action.ndim))
    return jnp.sum(jnp.where(chosen, rows, 0.0), axis=-1)


def _advantages(
    recipe: PPO, squad: Squad, lived: Lived, last: Seen
) -> tuple[Float[Array, "time arena agent"], Float[Array, "time arena agent"]]:
    """How much better than expected each action was, and what the values should have been."""
    values = squad.value(lived.seen)[..., 0]
    ahead = squad.value(last)[..., 0]
    following = jnp.concatenate([values[1:], ahead[None]])

    def before(gain: Array, step: tuple[Array, ...]) -> tuple[Array, Array]:
        reward, value, after, goes_on = step
        surprise = reward + recipe.discount * jnp.where(goes_on, after, 0.0) - value
        gain = surprise + recipe.discount * recipe.trace * jnp.where(goes_on, gain, 0.0)
        return gain, gain

    steps = (lived.rewards, values, following, lived.goes_on)
    _, gains = jax.lax.scan(before, jnp.zeros_like(ahead), steps, reverse=True)
    return gains, gains + values


def _loss(
    squads: tuple[Squad, ...], recipe: PPO, parts: tuple[tuple[Lived, Array, Array], ...]
) -> tuple[Float[Array, ""], tuple[Float[Array, ""], ...]]:
    """The loss of PPO, added over the squads, and the entropy of each."""
    total, entropies = jnp.float32(0), []
    for squad, (lived, gains, goals) in zip(squads, parts, strict=True):
        acted = lived.acted.astype(jnp.float32)
        number = jnp.maximum(jnp.sum(acted), 1.0)

        def mean(values: Array, acted: Array = acted, number: Array = number) -> Array:
            return jnp.sum(values * acted) / number

        above = gains - mean(gains)
        above = above / (jnp.sqrt(mean(above**2)) + 1e-6)
        likely = jax.nn.log_softmax(squad.policy(lived.seen))
        ratio = jnp.exp(_of(likely, lived.actions) - lived.likely)
        near = jnp.clip(ratio, 1 - recipe.clip, 1 + recipe.clip)
        policy = -mean(jnp.minimum(ratio * above, near * above))
        value = mean((squad.value(lived.seen)[..., 0] - goals) ** 2)
        entropy = mean(-jnp.sum(jnp.exp(likely) * likely, axis=-1))
        total = total + policy + 0.5 * value - recipe.entropy * entropy
        entropies.append(entropy)
    return total, tuple(entropies)


def _once(recipe: PPO, field: Arenas, before: Learning) -> tuple[Learning, Any]:
    """Some steps of every arena, then the passes over them."""
    key, playing, looking = jax.random.split(before.key, 3)
    states, lived, falls = _play(recipe, field, before, playing)
    views = field.look(states, looking)
    judged = tuple(
        (some, *_advantages(recipe, squad, some, squad.perceive(views, field.env.sides)))
        for squad, some in zip(before.squads, lived, strict=True)
    )
    size = recipe.arenas // recipe.parts

    def part(carry: tuple[Any, Any], number: Int[Array, ""]) -> tuple[tuple[Any, Any], Any]:
        arrays, optimiser = carry
        squads = eqx.combine(arrays, static)
        some = jax.tree.map(
            lambda leaf: jax.lax.dynamic_slice_in_dim(leaf, number * size, size, axis=1), judged
        )
        gradient, entropies = eqx.filter_grad(_loss, has_aux=True)(squads, recipe, some)
        with jax.numpy_dtype_promotion("standard"):  # Optax mixes its counter with floats.
            change, optimiser = recipe.adam.update(gradient, optimiser)
        squads = eqx.apply_updates(squads, change)
        return (eqx.filter(squads, eqx.is_array), optimiser), entropies

    arrays, static = eqx.partition(before.squads, eqx.is_array)
    numbers = jnp.tile(jnp.arange(recipe.parts), recipe.passes)
    (arrays, optimiser), entropies = jax.lax.scan(part, (arrays, before.optimiser), numbers)
    rewards = tuple(
        jnp.sum(some.rewards) / jnp.maximum(jnp.sum(some.acted, dtype=jnp.float32), 1.0)
        for some in lived
    )
    after = Learning(
        squads=eqx.combine(arrays, static),
        optimiser=optimiser,
        states=states,
        steps=before.steps + recipe.per_update,
        key=key,
    )
    return after, (rewards, tuple(map(jnp.mean, entropies)), falls)


def _many(recipe: PPO, field: Arenas, learning: Learning) -> Any:
    return repeat(partial(_once, recipe, field), learning, recipe.chunk)


_advance = compiled(_many)
