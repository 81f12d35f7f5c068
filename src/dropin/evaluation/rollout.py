"""Returns of whole episodes, of many environments in parallel."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from dropin.adhoc import AdHoc
from dropin.compilation import compiled
from dropin.players import Player


class Episodes(eqx.Module):
    """The same number of episodes of every environment, one after another."""

    returns: Float[Array, "env episode"]
    shaping: Float[Array, "env episode"]
    """The part of each return that only guides learning."""
    ends: Int[Array, "env episode"]
    """The step at which each episode was over, counted from the start of the first one."""
    counts: Float[Array, "ratio 2"]
    """The parts and wholes of the game's ratios over all these episodes."""
    flaw: Int[Array, " 2"]
    """The step after which, and the slot in which a state was not finite; -1 if none was."""


class _Tally(eqx.Module):
    state: Any
    seen: Any
    memory: Any
    score: Float[Array, " env"]
    shaping: Float[Array, " env"]
    finished: Int[Array, " env"]
    step: Int[Array, ""]
    episodes: Episodes


def _rollout(env: AdHoc, player: Player, key: PRNGKeyArray, envs: int, episodes: int) -> Episodes:
    """Play until every environment has had so many episodes.

    None is left out for being long, so the mean of their returns is that of the player.
    """
    placing, playing = jax.random.split(key)
    states, seen = jax.vmap(env.reset)(jax.random.split(placing, envs))
    start = jax.vmap(lambda _: player.start(env.slots))(jnp.arange(envs))
    none = jnp.zeros((envs, episodes))
    nothing = Episodes(
        returns=none,
        shaping=none,
        ends=none.astype(jnp.int32),
        counts=jnp.zeros((len(env.game.ratios), 2)),
        flaw=jnp.full(2, -1),
    )
    zero = jnp.zeros(envs)

    def go_on(tally: _Tally) -> Array:
        return jnp.any(tally.finished < episodes)

    def step(tally: _Tally) -> _Tally:
        keys = jax.random.split(jax.random.fold_in(playing, tally.step), (2, envs))
        actions, memory = jax.vmap(player.act)(keys[0], tally.state, tally.seen, tally.memory)
        state, time_step = jax.vmap(env.step)(keys[1], tally.state, actions)
        score = tally.score + time_step.reward
        shaping = tally.shaping + time_step.shaping[:, 0]
        now = jnp.arange(episodes)[None] == tally.finished[:, None]
        now &= time_step.done[:, None]
        after = tally.step + 1
        counts = jax.vmap(env.game.counts)(time_step.happened)
        counted = (tally.finished < episodes)[:, None, None]
        flaws = jnp.any(jax.vmap(env.game.flaws)(state.game), axis=0)
        first = jnp.any(flaws) & (tally.episodes.flaw[0] < 0)
        flaw = jnp.where(first, jnp.stack([after, jnp.argmax(flaws)]), tally.episodes.flaw)
        return _Tally(
            state=state,
            seen=time_step.observation,
            memory=memory,
            score=jnp.where(time_step.done, 0.0, score),
            shaping=jnp.where(time_step.done, 0.0, shaping),
            finished=tally.finished + time_step.done.astype(jnp.int32),
            step=after,
            episodes=Episodes(
                jnp.where(now, score[:, None], tally.episodes.returns),
                jnp.where(now, shaping[:, None], tally.episodes.shaping),
                jnp.where(now, after, tally.episodes.ends),
                tally.episodes.counts + jnp.sum(jnp.where(counted, counts, 0.0), axis=0),
                flaw,
            ),
        )

    first = _Tally(
        state=states,
        seen=seen,
        memory=start,
        score=zero,
        shaping=zero,
        finished=zero.astype(jnp.int32),
        step=jnp.int32(0),
        episodes=nothing,
    )
    return jax.lax.while_loop(go_on, step, first).episodes


rollout = compiled(_rollout)
