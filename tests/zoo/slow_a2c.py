"""A2C in plain NumPy, one agent and step at a time."""

import numpy as np
from slow_networks import entropy, softmax


def returns(rewards, last_values, not_done, discount) -> np.ndarray:
    """Return the discounted rewards from each step on [time, env, agent].

    The sum ends with the episode; if the rollout ends before it, the value of what follows counts.
    """
    length = len(rewards)
    result = np.zeros(rewards.shape)
    for start, env, agent in np.ndindex(rewards.shape):
        factor = 1.0
        for time in range(start, length):
            result[start, env, agent] += factor * rewards[time, env, agent]
            factor *= discount
            if not not_done[time, env, agent]:
                break
        else:
            result[start, env, agent] += factor * last_values[env, agent]
    return result


def loss(logits, values, actions, advantages, targets, entropy_coef) -> float:
    """Return the loss, a sum over agents of means over their steps.

    Args:
        logits: [time, env, agent, action].
        values: [time, env, agent].
        actions: [time, env, agent].
        advantages: Of the actions, as constants.
        targets: Of the values, as constants.
        entropy_coef: Weight of the entropy.
    """
    total = 0.0
    for agent in range(values.shape[2]):
        terms = []
        for row in np.ndindex(values.shape[:2]):
            place = (*row, agent)
            log_prob = np.log(softmax(logits[place])[actions[place]])
            error = values[place] - targets[place]
            terms.append(
                -log_prob * advantages[place]
                + 0.5 * error**2
                - entropy_coef * entropy(logits[place])
            )
        total += np.mean(terms)
    return float(total)
