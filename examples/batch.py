"""Many open teams at once: 100 steps of a random learner in 256 parallel environments."""

import jax

import dropin

num_envs = 256
env = dropin.make("lbf", team_limit=5)


def step(states, key):
    act_key, step_key = jax.random.split(key)
    actions = jax.random.randint(act_key, (num_envs,), 0, len(env.game.actions))
    return jax.vmap(env.step)(jax.random.split(step_key, num_envs), states, actions)


states, _ = jax.jit(jax.vmap(env.reset))(jax.random.split(jax.random.key(0), num_envs))
_, steps = jax.lax.scan(step, states, jax.random.split(jax.random.key(1), 100))
size = steps.acted.sum(axis=2)
print(f"{steps.reward.size} steps of a random learner, mean reward {steps.reward.mean():.3f}")
print(f"teams of {size.min()} to {size.max()} agents, {size.mean():.2f} on average")
