"""Wolfpack with open teams, one environment, in plain Python.

The tests compare the fast implementation with this one, and the benchmark uses it as the baseline.
It is written from the rules of the game alone and shares no code with what it checks. To allow
exact comparison, `act` is deterministic once the new cells of captured prey are given, and
`distribution` returns the choice of a teammate as probabilities. For the learned prey and the types
H5 and H6 it reads the weights that come with the package.
"""

from collections import Counter, deque
from collections.abc import Iterator
from functools import cache
from heapq import heappop, heappush
from math import exp
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

UP, RIGHT, DOWN, LEFT, STAY = range(5)
TURN_LEFT, TURN_RIGHT = 5, 6
MOVES = ((-1, 0), (0, 1), (1, 0), (0, -1), (0, 0))
TYPES = ("H1", "H2", "H3", "H4", "H7", "H8", "H9")
WAITING = {"H7": "H2", "H8": "H3", "H9": "H4"}
LEARNED = ("H5", "H6")
WEIGHTS = Path(__file__).parent.parent / "src/dropin/games/wolfpack/weights"

NUM_PREY_ACTIONS = 7
RANDOM_ACTION_PROB = 0.1  # of a learned prey, in each step
PATCH_DEPTH, PATCH_SIDE = 9, 8  # a prey sees its own row and eight ahead, eight cells to each side
PATCH_WIDTH = 2 * PATCH_SIDE + 1

Cell = tuple[int, int]


def manhattan(a: Cell, b: Cell) -> int:
    """Return the number of steps between two cells."""
    return abs(a[0] - b[0]) + abs(a[1] - b[1])


def shifted(cell: Cell, action: int) -> Cell:
    """Return the cell an action leads to, on the grid or not."""
    down, right = MOVES[action]
    return cell[0] + down, cell[1] + right


def around(cell: Cell, size: int, order=(UP, RIGHT, DOWN, LEFT)) -> Iterator[Cell]:
    """Yield the neighbours of a cell that are on the grid."""
    for action in order:
        row, col = shifted(cell, action)
        if 0 <= row < size and 0 <= col < size:
            yield row, col


def step_towards(cell: Cell, other: Cell) -> int:
    """Return the move from a cell towards another one, by column unless they share it."""
    if cell[1] != other[1]:
        return RIGHT if other[1] > cell[1] else LEFT
    return DOWN if other[0] > cell[0] else UP


def reference_first_step(start: Cell, goal: Cell, blocked: set[Cell], size: int) -> int | None:
    """Return the first move of the path found by always expanding the lowest (row, col), or None.

    The search ends when the goal is expanded, so the path need not be a shortest one. The start
    may be blocked, the goal may not.
    """
    if start == goal or goal in blocked:
        return None
    cost, parent = {start: 0}, {}
    frontier = [start]
    while frontier:
        cell = heappop(frontier)
        if cell == goal:
            while parent[cell] != start:
                cell = parent[cell]
            return step_towards(start, cell)
        for near in around(cell, size):
            if near not in blocked and (near not in cost or cost[cell] + 1 < cost[near]):
                cost[near], parent[near] = cost[cell] + 1, cell
                heappush(frontier, near)
    return None


def shortest_first_steps(start: Cell, goal: Cell, blocked: set[Cell], size: int) -> list[int]:
    """Return every move that begins a shortest path, in the order of the actions.

    The start may be blocked, the goal may not.
    """
    if start == goal or goal in blocked:
        return []
    to_goal = {goal: 0}
    queue = deque([goal])
    while queue and start not in to_goal:
        cell = queue.popleft()
        for near in around(cell, size):
            if near not in to_goal and (near == start or near not in blocked):
                to_goal[near] = to_goal[cell] + 1
                queue.append(near)
    if start not in to_goal:
        return []
    # When the start is found, all cells closer to the goal are known.
    closer = to_goal[start] - 1
    return [move for move in range(4) if to_goal.get(shifted(start, move)) == closer]


def certain(action: int) -> np.ndarray:
    """Return the distribution that always takes one action."""
    probs = np.zeros(5)
    probs[action] = 1.0
    return probs


def uniform(count: int = 5) -> np.ndarray:
    """Return the uniform distribution over the first `count` actions."""
    probs = np.zeros(5)
    probs[:count] = 1 / count
    return probs


def softmax(logits: np.ndarray) -> np.ndarray:
    """Return probabilities in proportion to the exponentials."""
    powers = np.exp(logits - logits.max(), dtype=float)
    return powers / powers.sum()


def relu(x: np.ndarray) -> np.ndarray:
    """Replace negative numbers by zero."""
    return np.maximum(x, 0)


def layer(weights: dict[str, np.ndarray], name: str, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the weight [input, output] and the bias [output] of a layer."""
    return weights[f"{name}layers[{k}].weight"], weights[f"{name}layers[{k}].bias"]


class LearnedPrey:
    """What learned prey see, and the values of their actions."""

    def __init__(self, size: int, num_prey: int):
        weights = load_file(WEIGHTS / "prey.safetensors")
        # There are two networks; further prey reuse them in turn.
        index = np.arange(num_prey) % 2
        layers = [layer(weights, "", k) for k in range(3)]
        self.layers = [(weight[index], bias[index, None]) for weight, bias in layers]
        self.outside = self._outside(size)

    @staticmethod
    def _outside(size: int) -> np.ndarray:
        """Return which cells of a patch are off the grid, for each facing, row and column."""
        row, col = np.arange(size)[:, None, None], np.arange(size)[None, :, None]
        ahead, aside = np.divmod(np.arange(PATCH_DEPTH * PATCH_WIDTH), PATCH_WIDTH)
        aside -= PATCH_SIDE
        patches = []
        for facing in range(4):
            (down, right), (side_down, side_right) = MOVES[facing], MOVES[(facing + 1) % 4]
            at_row = row + ahead * down + aside * side_down
            at_col = col + ahead * right + aside * side_right
            patches.append((at_row < 0) | (at_row >= size) | (at_col < 0) | (at_col >= size))
        return np.stack(patches).astype(np.float32)

    def patches(self, game: "SlowWolfpack") -> np.ndarray:
        """Return what each prey sees, rotated with it: hunters, then prey, then off the grid.

        Captured prey are not visible, not even to themselves.
        """
        hunters = [cell for cell in game.hunters if cell is not None]
        alive = [prey for prey, gone in zip(game.prey, game.captured, strict=True) if not gone]
        things = [(0, cell) for cell in hunters] + [(1, cell) for cell in alive]
        seen = np.zeros((len(game.prey), 3, PATCH_DEPTH * PATCH_WIDTH), np.float32)
        for i, ((row, col), facing) in enumerate(zip(game.prey, game.facing, strict=True)):
            (down, right), (side_down, side_right) = MOVES[facing], MOVES[(facing + 1) % 4]
            for kind, cell in things:
                rows, cols = cell[0] - row, cell[1] - col
                ahead = rows * down + cols * right
                aside = rows * side_down + cols * side_right
                if 0 <= ahead < PATCH_DEPTH and -PATCH_SIDE <= aside <= PATCH_SIDE:
                    seen[i, kind, ahead * PATCH_WIDTH + aside + PATCH_SIDE] = 1
            seen[i, 2] = self.outside[facing, row, col]
        return seen.reshape(len(seen), -1)

    def values(self, game: "SlowWolfpack") -> np.ndarray:
        """Return the value of each action, [prey, action], by the network of each prey."""
        (first, bias), *others = self.layers
        x = self.patches(game)[:, None] @ first + bias
        for weight, bias in others:
            x = relu(x) @ weight + bias
        return x[:, 0]


class RelationalBlock:
    """Sends a message from every node to every other node and computes a new vector for each.

    Messages and new vectors come from two layers each. There is no activation between the last
    layer of the messages, their sum and its part of the next layer, so these are one product.
    """

    def __init__(self, weights: dict[str, np.ndarray], name: str):
        pair, pair_bias = layer(weights, f"{name}.message.", 0)
        message, message_bias = layer(weights, f"{name}.message.", 1)
        new, new_bias = layer(weights, f"{name}.node.", 0)
        self.last, self.last_bias = layer(weights, f"{name}.node.", 1)
        inputs, self.units = len(pair) // 2, pair.shape[1]
        # The layers that see one node alone: as a sender, as a receiver, for its new vector.
        self.alone = np.concatenate([pair[:inputs], pair[inputs:], new[:inputs]], axis=1)
        self.alone_bias = np.concatenate([0 * pair_bias, pair_bias, new_bias])
        self.heard = message @ new[inputs:]
        self.heard_bias = message_bias @ new[inputs:]

    def __call__(self, nodes: np.ndarray, count: int) -> np.ndarray:
        """Return the new vectors of the first `count` nodes."""
        alone = nodes @ self.alone + self.alone_bias
        send = alone[:, : self.units]
        receive, own = alone[:count, self.units : 2 * self.units], alone[:count, 2 * self.units :]
        pairs = relu(send[:, None] + receive)  # [sender, receiver, unit]
        total = pairs.sum(axis=0) - relu(send[:count] + receive)  # no message to oneself
        new = own + total @ self.heard + (len(nodes) - 1) * self.heard_bias
        return relu(new) @ self.last + self.last_bias


class HunterNetwork:
    """The network of a learned hunter, over all hunters and prey."""

    def __init__(self, name: str):
        weights = load_file(WEIGHTS / f"{name}.safetensors")
        self.first = RelationalBlock(weights, "first")
        self.second = RelationalBlock(weights, "second")
        self.readout = [layer(weights, "readout.", k) for k in range(2)]

    def outputs(self, hunters: list[Cell], prey: list[Cell], facing: list[int]) -> np.ndarray:
        """Return the outputs, [hunter, action]; all hunters given are present."""
        nodes = [(row / 10, col / 10, 1, 0, 0, 0, 0, 0) for row, col in hunters]
        for (row, col), faces in zip(prey, facing, strict=True):
            one_hot = (faces == 0, faces == 1, faces == 2, faces == 3)
            nodes.append((row / 10, col / 10, 0, 1, *one_hot))
        nodes = np.array(nodes, np.float32)
        x = relu(self.first(nodes, len(nodes)))
        x = relu(self.second(x, len(hunters)))
        (weight, bias), (last, last_bias) = self.readout
        return relu(x @ weight + bias) @ last + last_bias


# The weights are read once.
learned_prey, hunter_network = cache(LearnedPrey), cache(HunterNetwork)


class SlowWolfpack:
    """One game. Slot 0 is the learner, the other slots hold teammates or are empty.

    hunters: per slot None or (row, col)
    prey: (row, col) of each prey
    facing: per prey its orientation, 0 up, 1 right, 2 down, 3 left
    captured: per prey whether it was captured in the step just finished
    time: steps taken in this episode
    types: per slot the name of the teammate's type, or None
    radius: per slot the waiting radius of the teammate there, or None
    threshold: per slot how many others near its prey end the waiting of the teammate, or None
    counters: per slot the steps the teammate has left (paper) or has stayed (reference), or None
    waiting: steps left for each agent that exists but is absent; empty under the reference rules

    If `learned`, teammates may also be of the types H5 and H6, and prey act by their networks.
    """

    def __init__(
        self,
        rules="paper",
        team_limit=3,
        slots=None,
        seed=0,
        size=10,
        num_prey=2,
        horizon=200,
        lone_penalty=0.5,
        shaping_weight=None,
        learned=False,
    ):
        if rules not in ("paper", "reference"):
            raise ValueError(f"rules must be 'paper' or 'reference', not {rules!r}")
        slots = team_limit if slots is None else slots
        if not 2 <= team_limit <= slots:
            raise ValueError(f"need 2 <= team_limit <= slots, not {team_limit} and {slots}")
        self.rules, self.team_limit, self.slots = rules, team_limit, slots
        self.size, self.num_prey, self.horizon = size, num_prey, horizon
        if shaping_weight is None:
            shaping_weight = 0.01 if rules == "reference" else 0.0
        self.lone_penalty, self.shaping_weight = lone_penalty, shaping_weight
        self.pool = tuple(sorted(TYPES + LEARNED)) if learned else TYPES
        self._learned_prey = learned_prey(size, num_prey) if learned else None
        self.networks = {name: hunter_network(name) for name in LEARNED} if learned else {}
        # The last outputs of each network, and the position that they are for.
        self.last_outputs: dict[str, tuple[tuple, np.ndarray]] = {}
        self.rng = np.random.default_rng(seed)
        self.reset()

    def reset(self) -> None:
        """Start an episode: with the full team under the paper rules, else with three at most."""
        self.time = 0
        self.hunters: list[Cell | None] = [None] * self.slots
        self.prey: list[Cell] = []
        self.types: list[str | None] = [None] * self.slots
        self.radius: list[int | None] = [None] * self.slots
        self.threshold: list[int | None] = [None] * self.slots
        self.counters: list[int | None] = [None] * self.slots
        self.waiting: list[int] = []
        team = self.team_limit if self.rules == "paper" else min(3, self.team_limit)
        [self.hunters[0]] = self._draw_free(1)
        for slot in range(1, team):
            self._enter(slot)
        self.prey = self._draw_free(self.num_prey)
        self.facing = [UP] * self.num_prey
        self.captured = [False] * self.num_prey

    def _between(self, low: int, high: int) -> int:
        """Draw a uniform integer, both ends included."""
        return int(self.rng.integers(low, high + 1))

    def _occupied(self) -> set[Cell]:
        """Return the cells of all hunters and prey, also of prey just captured."""
        return {cell for cell in self.hunters if cell is not None}.union(self.prey)

    def _draw_free(self, count: int) -> list[Cell]:
        """Draw different cells that hold neither a hunter nor a prey."""
        occupied, lines = self._occupied(), range(self.size)
        free = [(row, col) for row in lines for col in lines if (row, col) not in occupied]
        if count > len(free):
            raise ValueError(f"{count} free cells are needed, {len(free)} are left")
        return [free[i] for i in self.rng.choice(len(free), size=count, replace=False)]

    def _present(self) -> list[int]:
        """Return the slots that are not empty."""
        return [slot for slot, cell in enumerate(self.hunters) if cell is not None]

    def _cell(self, slot: int) -> Cell:
        """Return the cell of the hunter in a slot that is not empty."""
        cell = self.hunters[slot]
        if cell is None:
            raise ValueError(f"slot {slot} is empty")
        return cell

    def team_size(self) -> int:
        """Return the number of hunters present, the learner included."""
        return len(self._present())

    def respawn(self, cells: dict[int, Cell] | None = None) -> None:
        """Move captured prey to new cells: random ones, or the ones given for each.

        A new cell is free of hunters and of all prey, also of those captured.
        """
        captured = [i for i, gone in enumerate(self.captured) if gone]
        if not captured and not cells:
            return
        if cells is None:
            new = dict(zip(captured, self._draw_free(len(captured)), strict=True))
        else:
            new = {i: (int(row), int(col)) for i, (row, col) in cells.items()}
            if sorted(new) != captured:
                raise ValueError(f"prey {captured} need new cells, not {sorted(new)}")
            if len(set(new.values())) < len(new) or not self._occupied().isdisjoint(new.values()):
                raise ValueError(f"the cells {new} are not different and free")
            if not all(self._inside(cell) for cell in new.values()):
                raise ValueError(f"the cells {new} are not all on the grid")
        for i, cell in new.items():
            self.prey[i] = cell
        self.captured = [False] * self.num_prey

    def act(self, actions, prey_actions, cells=None) -> tuple[list[float], list[float], bool]:
        """Respawn, move, capture and count the step; `cells` are those of `respawn`.

        Returns the reward of each slot, the part of it that is shaping, and whether time ran out.
        """
        self.respawn(cells)
        self.time += 1
        before = self._prey_distances()
        self._move(actions, prey_actions)
        rewards = self._capture()
        shaping = [0.0] * self.slots
        for slot, distance in self._prey_distances().items():
            shaping[slot] = self.shaping_weight * (before[slot] - distance)
            rewards[slot] += shaping[slot]
        return rewards, shaping, self.time >= self.horizon

    def _prey_distances(self) -> dict[int, int]:
        """Return the distance of each hunter to the nearest prey, captured or not."""
        return {
            slot: min(manhattan(self._cell(slot), prey) for prey in self.prey)
            for slot in self._present()
        }

    def _inside(self, cell: Cell) -> bool:
        """Return whether a cell is on the grid."""
        return 0 <= cell[0] < self.size and 0 <= cell[1] < self.size

    def _move(self, actions, prey_actions) -> None:
        """Move everybody at once; all that meet in a cell go back, until none meet.

        A move off the grid counts as staying. Two may swap cells, and turns are never undone.
        """
        present = self._present()
        old = [self._cell(slot) for slot in present] + self.prey
        moves = [int(actions[slot]) for slot in present]
        for i in range(self.num_prey):
            action = int(prey_actions[i])
            moves.append((self.facing[i] + action) % 4 if action < STAY else STAY)
            if action in (TURN_LEFT, TURN_RIGHT):
                turn = 1 if action == TURN_RIGHT else -1
                self.facing[i] = (self.facing[i] + turn) % 4

        new = [shifted(cell, move) for cell, move in zip(old, moves, strict=True)]
        new = [to if self._inside(to) else cell for to, cell in zip(new, old, strict=True)]
        while len(set(new)) < len(new):
            crowd = Counter(new)
            new = [to if crowd[to] == 1 else cell for to, cell in zip(new, old, strict=True)]

        for slot, cell in zip(present, new, strict=False):
            self.hunters[slot] = cell
        self.prey = new[len(present) :]

    def _capture(self) -> list[float]:
        """Capture prey with two or more hunters next to them; return the rewards.

        Each of these hunters gets twice their number; one alone next to a prey pays the penalty.
        """
        rewards = [0.0] * self.slots
        present = self._present()
        for i, prey in enumerate(self.prey):
            pack = [slot for slot in present if manhattan(self._cell(slot), prey) == 1]
            self.captured[i] = len(pack) >= 2
            for slot in pack:
                rewards[slot] += 2.0 * len(pack) if self.captured[i] else -self.lone_penalty
        return rewards

    def distribution(
        self, name: str | None, slot: int, radius: int | None = None, threshold: int | None = None
    ) -> np.ndarray:
        """Return the probabilities of the actions that a hunter of a type would take now.

        H1 acts at random, H2 and H3 are greedy, H4 divides the cells next to the prey among all.
        H7, H8 and H9 are these three in turn, but wait for others close to a prey; only they use
        the radius and the threshold, by default those of the slot. H5 samples by the softmax of
        its network's outputs, H6 takes the highest one.
        """
        if name is None or name not in self.pool:
            raise ValueError(f"unknown type {name!r}")
        me = self._cell(slot)
        if name in LEARNED:
            outputs = self.network_outputs(name)[slot]
            return certain(int(outputs.argmax())) if name == "H6" else softmax(outputs)

        alive = [prey for prey, gone in zip(self.prey, self.captured, strict=True) if not gone]
        if name in WAITING:
            radius = self.radius[slot] if radius is None else radius
            threshold = self.threshold[slot] if threshold is None else threshold
            if radius is None or threshold is None:
                raise ValueError(f"slot {slot} has no waiting radius and threshold")
            if alive:
                _, prey = self._nearest(me, alive)
                if self._is_waiting(slot, prey, radius, threshold):
                    return uniform() if self.rules == "paper" else self._retreat(me, prey)
            name = WAITING[name]

        if name == "H4":
            return self._aware(slot)
        if name == "H1" or not alive:
            return uniform()
        for prey in alive:
            if manhattan(me, prey) == 1:
                return certain(step_towards(me, prey))
        target, _ = self._nearest(me, alive)
        return self._greedy(me, target) if name == "H2" else self._probabilistic(me, target)

    def network_outputs(self, name: str) -> np.ndarray:
        """Return the outputs of a type's network, [slot, action]; nan for empty slots.

        They are the same for all hunters, so they are kept until somebody moves.
        """
        position = (*self.hunters, *self.prey, *self.facing)
        if name not in self.last_outputs or self.last_outputs[name][0] != position:
            present = self._present()
            hunters = [self._cell(slot) for slot in present]
            outputs = np.full((self.slots, 5), np.nan, np.float32)
            outputs[present] = self.networks[name].outputs(hunters, self.prey, self.facing)
            self.last_outputs[name] = position, outputs
        return self.last_outputs[name][1]

    def _nearest(self, me: Cell, alive: list[Cell]) -> tuple[Cell, Cell]:
        """Return the nearest cell next to a living prey, the first one on ties, and this prey."""
        order = (LEFT, RIGHT, DOWN, UP)
        pairs = [(cell, prey) for prey in alive for cell in around(prey, self.size, order)]
        return min(pairs, key=lambda pair: manhattan(me, pair[0]))

    def _is_waiting(self, slot: int, prey: Cell, radius: int, threshold: int) -> bool:
        """Return whether a hunter is near its prey while too few others are."""
        if manhattan(self._cell(slot), prey) > radius:
            return False
        others = [self._cell(k) for k in self._present() if k != slot]
        return sum(manhattan(other, prey) <= radius for other in others) < threshold

    def _retreat(self, me: Cell, prey: Cell) -> np.ndarray:
        """Step away from a prey."""
        rows, cols = me[0] - prey[0], me[1] - prey[1]
        vertical = UP if rows < 0 else DOWN
        horizontal = RIGHT if cols > 0 else LEFT
        return self._larger_gap(me, abs(rows), vertical, abs(cols), horizontal)

    def _greedy(self, me: Cell, target: Cell) -> np.ndarray:
        """Step towards a target, whatever is in the way."""
        rows, cols = me[0] - target[0], me[1] - target[1]
        vertical = DOWN if rows < 0 else UP
        horizontal = LEFT if cols > 0 else RIGHT
        return self._larger_gap(me, abs(rows), vertical, abs(cols), horizontal)

    def _larger_gap(
        self, me: Cell, rows: int, vertical: int, cols: int, horizontal: int
    ) -> np.ndarray:
        """Move along the larger gap, by column on ties, if that stays on the grid.

        Otherwise take the other move, or any of the four if both would leave the grid.
        """
        wanted = (vertical, horizontal) if rows > cols else (horizontal, vertical)
        for move in wanted:
            if self._inside(shifted(me, move)):
                return certain(move)
        return uniform(4)

    def _probabilistic(self, me: Cell, target: Cell) -> np.ndarray:
        """Draw an axis by a softmax of the gaps, then step towards the target.

        Paper: an axis without a gap is never chosen.
        Reference: it may be, and the move is often away from the target, even off the grid.
        """
        rows, cols = me[0] - target[0], me[1] - target[1]
        axes = [(abs(rows), UP if rows > 0 else DOWN), (abs(cols), LEFT if cols > 0 else RIGHT)]
        if self.rules == "paper":
            axes = [(gap, good) for gap, good in axes if gap > 0]
        total = sum(exp(gap / 2.5) for gap, _ in axes)
        probs = np.zeros(5)
        for gap, good in axes:
            axis, bad = exp(gap / 2.5) / total, (good + 2) % 4
            towards = 1.0
            if self.rules == "reference":
                towards = 1 / (1 + exp((self._cost(me, good, -1) - self._cost(me, bad, 1)) / 2.5))
            probs[good] += axis * towards
            probs[bad] += axis * (1 - towards)
        return probs

    def _cost(self, me: Cell, move: int, change: int) -> int:
        """Return what a move costs H3 of the reference: the distance gained, 5 more off grid."""
        return change + (0 if self._inside(shifted(me, move)) else 5)

    def _aware(self, slot: int) -> np.ndarray:
        """Follow a path to the cell assigned to this hunter; act at random if there is none.

        The cells next to the prey, captured or not, are assigned one by one: hunters whose
        farthest cell is farthest choose first, and each takes the nearest one left. On its cell a
        hunter steps towards the prey.
        """
        prey_at: dict[Cell, Cell] = {}
        for prey in self.prey:
            for cell in around(prey, self.size, (RIGHT, LEFT, DOWN, UP)):
                prey_at.setdefault(cell, prey)
        goal = self._assigned(list(prey_at)).get(slot)
        if goal is None:
            return uniform()
        me = self._cell(slot)
        if goal == me:
            return certain(step_towards(me, prey_at[goal]))
        if self.rules == "paper":
            steps = shortest_first_steps(me, goal, self._occupied(), self.size)
            return certain(steps[0]) if steps else uniform()
        step = reference_first_step(me, goal, self._occupied(), self.size)
        return uniform() if step is None else certain(step)

    def _assigned(self, cells: list[Cell]) -> dict[int, Cell]:
        """Return the cell that each hunter gets, by slot; the first ones on ties."""
        distances = {
            slot: [manhattan(self._cell(slot), cell) for cell in cells] for slot in self._present()
        }
        left = list(range(len(cells)))
        assigned = {}
        for slot in sorted(distances, key=lambda k: -max(distances[k])):
            if left:
                chosen = min(left, key=distances[slot].__getitem__)
                left.remove(chosen)
                assigned[slot] = cells[chosen]
        return assigned

    def select_action(self, slot: int) -> int:
        """Draw the action of the teammate in a slot."""
        return int(self.rng.choice(5, p=self.distribution(self.types[slot], slot)))

    def open_process(self) -> tuple[list[int], list[int]]:
        """Let teammates leave, then others enter; return the slots left and the slots entered.

        One teammate always stays; if more are due, those that leave are drawn.
        Paper: agents with no steps left are due, and all come back after a wait.
        Reference: agents that stayed more than 25 steps are due, and only rare events let agents
        leave or enter.
        """
        paper = self.rules == "paper"
        self._tick()

        present = self._present()[1:]
        due = [k for k in present if self._is_due(self.counters[k])]
        most = len(present) - 1
        left = self._pick(due, most if paper else min(most, self._event()))
        for slot in left:
            for per_slot in (self.hunters, self.types, self.radius, self.threshold, self.counters):
                per_slot[slot] = None

        # Those present and those waiting add up to the limit, so there is room for all.
        room = self.team_limit - self.team_size()
        back = sum(steps <= 0 for steps in self.waiting)
        coming = back if paper else min(room, self._event())
        if paper:
            self.waiting = [steps for steps in self.waiting if steps > 0]
            self.waiting += [self._between(15, 25) for _ in left]
        free = [k for k in range(1, self.slots) if self.hunters[k] is None]
        entered = free[:coming]
        for slot in entered:
            self._enter(slot)
        return left, entered

    def _is_due(self, counter: int | None) -> bool:
        """Return whether an agent with this counter is due to leave."""
        return counter is not None and (counter <= 0 if self.rules == "paper" else counter > 25)

    def _tick(self) -> None:
        """Count one step for every agent but the learner."""
        change = -1 if self.rules == "paper" else 1
        self.counters = [None if count is None else count + change for count in self.counters]
        self.waiting = [steps - 1 for steps in self.waiting]

    def _event(self) -> int:
        """Draw how many agents an event of the reference rules concerns, 0 if there is no event."""
        if self.rng.random() >= 0.05:
            return 0
        return 1 if self.rng.random() < 0.7 else 2

    def _pick(self, candidates: list[int], most: int) -> list[int]:
        """Return all candidates, or a random choice of `most` of them if there are more; sorted."""
        if len(candidates) <= most:
            return candidates
        return sorted(self.rng.choice(candidates, size=max(most, 0), replace=False).tolist())

    def _enter(self, slot: int) -> None:
        """Put a teammate with a new cell, type, radius, threshold and counter into a slot."""
        [self.hunters[slot]] = self._draw_free(1)
        self.types[slot] = self.pool[self._between(0, len(self.pool) - 1)]
        if self.rules == "paper":
            self.radius[slot], self.threshold[slot] = self._between(3, 5), 1
            self.counters[slot] = self._between(25, 35)
        else:
            self.radius[slot] = int(self.rng.choice((2, 3, 4), p=(0.4, 0.4, 0.2)))
            self.threshold[slot] = 1 if self.rng.random() < 0.7 else 2
            self.counters[slot] = 0

    @property
    def learned_prey(self) -> LearnedPrey:
        """The networks of the prey."""
        if self._learned_prey is None:
            raise ValueError("prey that are not learned have to be given their actions")
        return self._learned_prey

    def select_prey_actions(self) -> list[int]:
        """Draw the action of each learned prey: the best one, or now and then a random one."""
        actions = self.learned_prey.values(self).argmax(axis=1).tolist()
        for i, draw in enumerate(self.rng.random(self.num_prey)):
            if draw < RANDOM_ACTION_PROB:
                actions[i] = self._between(0, NUM_PREY_ACTIONS - 1)
        return actions

    def step(self, learner_action: int, prey_actions=None) -> tuple[float, bool]:
        """Let teammates choose, all act and the team change; restart a finished episode.

        Learned prey choose for themselves if no actions are given, on what they see before
        captured prey reappear.
        """
        if prey_actions is None:
            prey_actions = self.select_prey_actions()
        actions = [STAY] * self.slots
        actions[0] = learner_action
        for slot in self._present()[1:]:
            actions[slot] = self.select_action(slot)
        rewards, _, truncated = self.act(actions, prey_actions)
        self.open_process()
        if truncated:
            self.reset()
        return rewards[0], truncated
