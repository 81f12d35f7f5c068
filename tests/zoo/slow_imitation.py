"""The loss of imitation in plain NumPy."""

import numpy as np
from slow_networks import softmax


def loss(logits, actions, present) -> tuple[float, float]:
    """Return the mean cross-entropy over the agents that are present, and the accuracy.

    Args:
        logits: [env, slot, action].
        actions: [env, slot].
        present: [env, slot].
    """
    surprises, correct = [], []
    for row in np.argwhere(present):
        place = tuple(row)
        surprises.append(-np.log(softmax(logits[place])[actions[place]]))
        correct.append(np.argmax(logits[place]) == actions[place])
    return float(np.mean(surprises)), float(np.mean(correct))
