"""A teammate type of your own: a function from what one agent sees to its action."""

import jax.numpy as jnp

import dropin

NONE, NORTH, SOUTH, WEST, EAST, LOAD = range(6)


def escort(view):
    """Walks to the learner; loads whenever it is next to an object."""
    rows, columns = view.agents[0, :2] - view.me[:2]
    by_row = jnp.where(rows < 0, NORTH, SOUTH)
    by_column = jnp.where(columns < 0, WEST, EAST)
    closer = jnp.where(jnp.abs(rows) > jnp.abs(columns), by_row, by_column)
    move = jnp.where(view.sees_agent[0], closer, NONE)
    return jnp.where(view.valid_actions[LOAD], LOAD, move)


for types in (["H6"], ["H6", escort]):
    env = dropin.make("lbf", rules="reference", team_limit=3, types=types)
    score = dropin.evaluate("H6", env, episodes=480).estimate()
    print(f"teammates {' and '.join(env.team.pool.names)}: mean return of H6 is {score}")
