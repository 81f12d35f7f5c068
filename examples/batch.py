"""Many open teams at once: 100 steps of a random learner in 256 environments, in one call."""

import jax

import dropin

env = dropin.make("lbf", team_limit=5)
reset, step = jax.vmap(env.reset), jax.vmap(env.step)


@jax.jit
def play(key):
    key, first = jax.random.split(key)
    state, _ = reset(jax.random.split(first, 256))

    def advance(state, key):
        acting, key = jax.random.split(key)
        actions = jax.random.randint(acting, (256,), 0, len(env.game.actions))
        state, time_step = step(jax.random.split(key, 256), state, actions)
        return state, (time_step.reward, time_step.acted.sum(axis=1))

    return jax.lax.scan(advance, state, jax.random.split(key, 100))[1]


reward, team_size = play(jax.random.key(0))
print(f"{reward.size} steps of a random learner, mean reward {reward.mean():.3f}")
print(f"teams of {team_size.min()} to {team_size.max()} agents, {team_size.mean():.2f} on average")
