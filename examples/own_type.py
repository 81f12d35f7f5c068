"""A teammate type of your own: a function from what one agent sees to its action."""

import equinox as eqx
import jax
import jax.numpy as jnp

import dropin
from dropin.players import player

EPISODES = 512
NONE, NORTH, SOUTH, WEST, EAST, LOAD = range(6)


def escort(view):
    """Walks to the learner; loads whenever it stands next to an object."""
    rows, columns = view.agents[0, :2] - view.me[:2]
    by_row = jnp.where(rows < 0, NORTH, SOUTH)
    by_column = jnp.where(columns < 0, WEST, EAST)
    closer = jnp.where(jnp.abs(rows) > jnp.abs(columns), by_row, by_column)
    sees_learner = view.sees_agent[0]
    return jnp.where(view.possible[LOAD], LOAD, jnp.where(sees_learner, closer, NONE))


@eqx.filter_jit
def mean_return(env, act, key):
    """The mean return of whoever acts in the learner's place."""

    def episode(key):
        key, first = jax.random.split(key)
        state, _ = env.reset(first)

        def step(state, key):
            acting, key = jax.random.split(key)
            state, time_step = env.step(key, state, act(acting, state), restart=False)
            return state, time_step.reward  # zero once every object is collected

        return jax.lax.scan(step, state, jax.random.split(key, 50))[1].sum()

    return jax.vmap(episode)(jax.random.split(key, EPISODES)).mean()


for types in (["H6"], ["H6", escort]):
    env = dropin.make("lbf", rules="reference", team_limit=3, types=types)
    score = mean_return(env, player(env, "H6"), jax.random.key(0))
    print(f"teammates {' and '.join(env.team.pool.names)}: mean return of H6 is {score:.2f}")
