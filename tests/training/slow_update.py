"""One update in NumPy and double precision: one environment after another, one agent after another,
agents that are not there left out. Written from the equations, without batches or masks.
"""

from itertools import combinations, product
from types import SimpleNamespace

import numpy as np


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x):
    e = np.exp(x - x.max())
    return e / e.sum()


def linear(layer, x):
    return x @ layer.weight + layer.bias


def mlp(network, *parts):
    x = np.concatenate(parts)
    for number, layer in enumerate(network.layers):
        x = linear(layer, np.maximum(x, 0) if number else x)
    return x


class Mind:
    """Type vectors of whoever is present, with a memory by slot."""

    def __init__(self, network, memory):
        self.network = network
        self.memory = {
            slot: (memory.hidden[slot], memory.cell[slot]) for slot in range(len(memory.cell))
        }

    def infer_types(self, observation, more=None):
        """`more` is what the features of each agent are followed by."""
        net, types = self.network, {}
        for slot in np.flatnonzero(observation.present).tolist():
            h, c = self.memory[slot]
            if observation.arrived[slot]:
                h, c = np.zeros_like(h), np.zeros_like(c)
            x = np.concatenate(
                [observation.agents[slot], more[slot] if more else [], observation.shared]
            )
            x = linear(net.second, np.maximum(linear(net.first, x), 0))
            i, f, g, o = np.split(np.concatenate([x, h]) @ net.lstm.weight + net.lstm.bias, 4)
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            h = sigmoid(o) * np.tanh(c)
            self.memory[slot] = (h, c)
            types[slot] = linear(net.last, np.maximum(h, 0))
        return types


def joint(graph, types, actions):
    """Eq. 5 with Eq. 6 and 7."""
    total = sum(mlp(graph.individual, types[j], types[0])[actions[j]] for j in types)

    def factor(j, k):
        parts = (
            (types[j], types[k], types[0]) if graph.pair_input == "pair" else (types[j], types[0])
        )
        return mlp(graph.pair, *parts).reshape(-1, graph.rank)[actions[j]]

    return total + sum(factor(j, k) @ factor(k, j) for j, k in combinations(types, 2))


def logits(model, types):
    """Eq. 8."""
    found = {}
    for j in types:
        heard = sum(
            (mlp(model.block.message, types[k], types[j]) for k in types if k != j),
            np.zeros(model.block.message.layers[-1].bias.shape),
        )
        found[j] = mlp(model.readout, mlp(model.block.node, types[j], heard))
    return found


def action_values(config, graph, types, predicted, number):
    """Eq. 9 by summing over all joint actions of the teammates; or the best of them."""
    mates = [j for j in types if j != 0]
    probs = {j: softmax(predicted[j]) for j in mates}
    values = []
    for mine in range(number):
        outcomes = []
        for theirs in product(range(number), repeat=len(mates)):
            chosen = dict(zip(mates, theirs, strict=True))
            chance = np.prod([probs[j][a] for j, a in chosen.items()])
            outcomes.append((chance, joint(graph, types, {0: mine, **chosen})))
        if config.teammate_actions == "optimistic":
            values.append(max(value for _, value in outcomes))
        else:
            values.append(sum(chance * value for chance, value in outcomes))
    return np.array(values)


def row(tree, *index):
    """What a tree of arrays says of one environment (and time)."""
    arrays = {name: leaf for name, leaf in vars(tree).items() if isinstance(leaf, np.ndarray)}
    return SimpleNamespace(**{name: leaf[index] for name, leaf in arrays.items()})


def attend(attention, nodes):
    """What the learner gets: one head, one agent after another."""
    heard = []
    for head in range(attention.num_heads):

        def part(network, j, head=head):
            return np.split(mlp(network, nodes[j]), attention.num_heads)[head]

        query = part(attention.query, 0)
        scores = [query @ part(attention.key, j) / np.sqrt(len(query)) for j in nodes]
        shares = softmax(np.array(scores))
        values = [part(attention.value, j) for j in nodes]
        heard.append(sum(share * value for share, value in zip(shares, values, strict=True)))
    return np.concatenate(heard)


def flat(part, observation, told, positions):
    """The input of QL: each agent at its place; `told` is what each will do, for QL-AM."""
    positions_in_all = part.config.max_agents_per_side * part.interface.num_sides
    rows = [np.array(part.interface.absent_values, float) for _ in range(positions_in_all)]
    probs = [-np.ones(len(part.interface.actions)) for _ in range(positions_in_all)]
    for slot in np.flatnonzero(observation.present):
        rows[positions[slot]] = observation.agents[slot]
        if told:
            probs[positions[slot]] = told[slot]
    return np.concatenate(rows + (probs[1:] if told else []))


def opinion(part, mind, observation, predicted, positions):
    """The values of the learner's actions, and a function from a joint action to its value."""
    told = None
    if getattr(part.config, "agent_model", False):
        told = {j: softmax(each) if j else -np.ones(len(each)) for j, each in predicted.items()}
    if hasattr(part, "graph"):
        types = mind.infer_types(observation)
        number = part.graph.individual.layers[-1].bias.shape[0]
        return (
            lambda: action_values(part.config, part.graph, types, predicted, number),
            lambda actions: joint(part.graph, types, actions),
        )
    if hasattr(part, "attention"):
        types = mind.infer_types(observation, told)
        nodes = {j: np.maximum(mlp(part.node, each), 0) for j, each in types.items()}
        values = linear(part.last, np.concatenate([nodes[0], attend(part.attention, nodes)]))
    else:
        whole = SimpleNamespace(
            agents=[flat(part, observation, told, positions)],
            shared=observation.shared,
            present=[True],
            arrived=observation.arrived[:1],
        )
        values = mlp(part.values, mind.infer_types(whole)[0])
    return lambda: values, lambda actions: values[actions[0]]


def predictions(learner, state, e):
    """From an observation to the logits of everybody, with memory; nothing without a model."""
    if learner.agent is None:
        return lambda observation: {}
    mind = Mind(learner.agent.type_network, row(state.memory.agent, e))
    return lambda observation: logits(learner.agent.model, mind.infer_types(observation))


def td_targets(config, learner, target, state, steps, ahead_actions, temperature):
    """What the value of what was done should be, by time and environment.

    `steps.positions` are the places of all agents, by observation and environment.
    """
    rollout_length, num_envs = steps.terminated.shape
    found = np.zeros((rollout_length, num_envs))
    for e in range(num_envs):
        slow = Mind(target.type_network, row(state.target_memory, e))
        predict = predictions(learner, state, e)
        predict(row(state.observation, e))
        for t in range(rollout_length):
            observation = row(steps.observation, t, e)
            values, done = opinion(
                target, slow, observation, predict(observation), steps.positions[t + 1][e]
            )
            if config.target == "sarsa":
                next_value = done(
                    steps.actions[t + 1, e] if t + 1 < rollout_length else ahead_actions[e]
                )
            else:
                next_value = values().max()
                if config.is_boltzmann:
                    next_value = softmax(values() / temperature) @ values()
            over = steps.terminated[t, e] or steps.truncated[t, e]
            found[t, e] = steps.rewards[t, e, 0] + (0.0 if over else config.discount * next_value)
    return found


def losses(learner, state, steps, targets):
    """Value loss and prediction loss of an update.

    Values are told what the learner of the state predicts, whatever the one that is judged does:
    they teach the agent model nothing.
    """
    rollout_length, num_envs = targets.shape
    squared, missed = [], []
    for e in range(num_envs):
        value = Mind(learner.value.type_network, row(state.memory.value, e))
        told, predict = predictions(state.network, state, e), predictions(learner, state, e)
        observation = row(state.observation, e)
        for t in range(rollout_length):
            actions = steps.actions[t, e]
            _, done = opinion(
                learner.value, value, observation, told(observation), steps.positions[t][e]
            )
            squared.append((done(actions) - targets[t, e]) ** 2)
            for j, each in predict(observation).items():
                if j != 0:
                    missed.append(-np.log(softmax(each)[actions[j]]))
            observation = row(steps.observation, t, e)
    return np.mean(squared), np.mean(missed) if missed else 0.0


def adam(weight, gradient, first, second, count, rate):
    """One step: the new weight."""
    first = 0.9 * first + 0.1 * gradient
    second = 0.999 * second + 0.001 * gradient**2
    count = count + 1
    return weight - rate * (first / (1 - 0.9**count)) / (
        np.sqrt(second / (1 - 0.999**count)) + 1e-8
    )
