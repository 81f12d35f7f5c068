"""Random actions over the Gymnasium view."""

import gymnasium

env = gymnasium.make("dropin.interop.gymnasium:dropin/LBF-v0", team_limit=3)
env.action_space.seed(0)

for episode in range(5):
    observation, info = env.reset(seed=episode)
    steps, total, done = 0, 0.0, False
    sizes = [int(observation["present"].sum())]
    while not done:
        action = env.action_space.sample()
        observation, reward, terminated, truncated, info = env.step(action)
        steps, total, done = steps + 1, total + float(reward), terminated or truncated
        sizes.append(int(observation["present"].sum()))
    print(
        f"episode {episode}: {steps} steps, return {total:g},"
        f" team of {min(sizes)} to {max(sizes)} agents"
    )
