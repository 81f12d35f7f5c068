"""PPO in plain NumPy, one agent and step at a time (arXiv:1707.06347, arXiv:1506.02438)."""

import numpy as np
from slow_networks import entropy, softmax


def advantages(rewards, values, last_values, not_done, discount, gae_lambda) -> np.ndarray:
    """Return the generalised advantage estimates of a rollout [time, env, agent].

    By their definition as a sum: the TD errors from a step on, weighted by powers of
    discount * lambda, up to and including the step with which the agent's life ended.
    """
    length = len(rewards)
    result = np.zeros(rewards.shape)
    for env, agent in np.ndindex(rewards.shape[1:]):
        for start in range(length):
            for time in range(start, length):
                following = last_values if time + 1 == length else values[time + 1]
                goes_on = not_done[time, env, agent]
                error = rewards[time, env, agent] - values[time, env, agent]
                error += discount * following[env, agent] if goes_on else 0
                result[start, env, agent] += (discount * gae_lambda) ** (time - start) * error
                if not goes_on:
                    break
    return result


def loss(
    logits, values, actions, old_log_probs, advantages, targets, acted, clip_eps, entropy_coef
) -> tuple[float, float]:
    """Return the loss of the agents that share an actor-critic, and their mean entropy.

    All arrays are [time, env, agent, ...]; entries of agents that did not act are ignored.
    """
    rows = [tuple(index) for index in np.argwhere(acted)]
    mean = np.mean([advantages[row] for row in rows])
    deviation = np.sqrt(np.mean([(advantages[row] - mean) ** 2 for row in rows]))
    surrogate, squared_error, entropies = [], [], []
    for row in rows:
        advantage = (advantages[row] - mean) / (deviation + 1e-6)
        probability = softmax(logits[row])[actions[row]]
        ratio = probability / np.exp(old_log_probs[row])
        # Nothing is gained from moving further than the clipping range in the good direction.
        limit = 1 + clip_eps if advantage > 0 else 1 - clip_eps
        too_far = ratio > limit if advantage > 0 else ratio < limit
        surrogate.append((limit if too_far else ratio) * advantage)
        squared_error.append((values[row] - targets[row]) ** 2)
        entropies.append(entropy(logits[row]))
    total = -np.mean(surrogate) + 0.5 * np.mean(squared_error) - entropy_coef * np.mean(entropies)
    return float(total), float(np.mean(entropies))
