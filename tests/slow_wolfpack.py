"""Wolfpack with open teams, one environment, in plain Python.

The tests compare the fast implementation with this one, and the benchmark uses it as the baseline.
It is written from the rules of the game alone and shares no code with what it checks.
So that it can be compared exactly, `act` is deterministic once new cells of captured prey are
given, and `distribution` gives the choice of a teammate as probabilities.
Of those who learned, the prey and the types H5 and H6, it reads the weights of the package.
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
WEIGHTS = Path(__file__).parent.parent / "src" / "dropin" / "teams" / "wolfpack" / "weights"

PREY_ACTIONS = 7
STUMBLES = 0.1  # how often a prey that learned does anything
DEEP, SIDE = 9, 8  # its patch: its own row of cells and eight ahead, eight cells to either side
WIDE = 2 * SIDE + 1

Cell = tuple[int, int]


def manhattan(a: Cell, b: Cell) -> int:
    """Steps between two cells."""
    return abs(a[0] - b[0]) + abs(a[1] - b[1])


def shifted(cell: Cell, action: int) -> Cell:
    """The cell an action leads to, on the grid or not."""
    down, right = MOVES[action]
    return cell[0] + down, cell[1] + right


def around(cell: Cell, size: int, order=(UP, RIGHT, DOWN, LEFT)) -> Iterator[Cell]:
    """The neighbours of a cell that are on the grid."""
    for action in order:
        row, col = shifted(cell, action)
        if 0 <= row < size and 0 <= col < size:
            yield row, col


def step_towards(cell: Cell, other: Cell) -> int:
    """The move from a cell towards another one, by column unless they share it."""
    if cell[1] != other[1]:
        return RIGHT if other[1] > cell[1] else LEFT
    return DOWN if other[0] > cell[0] else UP


def reference_first_step(start: Cell, goal: Cell, blocked: set[Cell], size: int) -> int | None:
    """First move of the path found by always expanding the lowest (row, col); None without path.

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
    """Every move that begins a shortest path, in the order of the actions; none without path.

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
    """The distribution that always takes one action."""
    chances = np.zeros(5)
    chances[action] = 1.0
    return chances


def uniform(count: int = 5) -> np.ndarray:
    """The first `count` actions with the same probability."""
    chances = np.zeros(5)
    chances[:count] = 1 / count
    return chances


def softmax(numbers: np.ndarray) -> np.ndarray:
    """Chances in proportion to the exponentials."""
    powers = np.exp(numbers - numbers.max(), dtype=float)
    return powers / powers.sum()


def relu(x: np.ndarray) -> np.ndarray:
    """Negative numbers become zero."""
    return np.maximum(x, 0)


def layer(weights: dict[str, np.ndarray], name: str, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Weight [input, output] and bias [output] of a layer."""
    return weights[f"{name}layers[{k}].weight"], weights[f"{name}layers[{k}].bias"]


class Fleeing:
    """What prey see that learned to flee, and what they think of their actions."""

    def __init__(self, size: int, prey: int):
        weights = load_file(WEIGHTS / "prey.safetensors")
        # There are two networks; more prey take turns.
        turns = np.arange(prey) % 2
        layers = [layer(weights, "", k) for k in range(3)]
        self.layers = [(weight[turns], bias[turns, None]) for weight, bias in layers]
        self.outside = self._outside(size)

    @staticmethod
    def _outside(size: int) -> np.ndarray:
        """For each way to face, row and column: which cells of the patch are not on the grid."""
        row, col = np.arange(size)[:, None, None], np.arange(size)[None, :, None]
        ahead, aside = np.divmod(np.arange(DEEP * WIDE), WIDE)
        aside -= SIDE
        ways = []
        for facing in range(4):
            (down, right), (side_down, side_right) = MOVES[facing], MOVES[(facing + 1) % 4]
            at_row = row + ahead * down + aside * side_down
            at_col = col + ahead * right + aside * side_right
            ways.append((at_row < 0) | (at_row >= size) | (at_col < 0) | (at_col >= size))
        return np.stack(ways).astype(np.float32)

    def patches(self, game: "SlowWolfpack") -> np.ndarray:
        """What each prey sees, turned with it: hunters, then prey, then the outside of the grid.

        Captured prey are not seen, not even by themselves.
        """
        hunters = [cell for cell in game.hunters if cell is not None]
        alive = [prey for prey, gone in zip(game.prey, game.captured, strict=True) if not gone]
        things = [(0, cell) for cell in hunters] + [(1, cell) for cell in alive]
        seen = np.zeros((len(game.prey), 3, DEEP * WIDE), np.float32)
        for i, ((row, col), facing) in enumerate(zip(game.prey, game.facing, strict=True)):
            (down, right), (side_down, side_right) = MOVES[facing], MOVES[(facing + 1) % 4]
            for kind, cell in things:
                rows, cols = cell[0] - row, cell[1] - col
                ahead = rows * down + cols * right
                aside = rows * side_down + cols * side_right
                if 0 <= ahead < DEEP and -SIDE <= aside <= SIDE:
                    seen[i, kind, ahead * WIDE + aside + SIDE] = 1
            seen[i, 2] = self.outside[facing, row, col]
        return seen.reshape(len(seen), -1)

    def values(self, game: "SlowWolfpack") -> np.ndarray:
        """The value of each action, [prey, action], by the network of each prey."""
        (first, bias), *others = self.layers
        x = self.patches(game)[:, None] @ first + bias
        for weight, bias in others:
            x = relu(x) @ weight + bias
        return x[:, 0]


class Block:
    """Every node gets a message from every other node, and from all that a new vector.

    Message and new vector come from two layers each. Nothing is between the last layer of the
    messages and their sum, nor between this and its part of the next layer, so these are one.
    """

    def __init__(self, weights: dict[str, np.ndarray], name: str):
        pair, pair_bias = layer(weights, f"{name}.message.", 0)
        told, told_bias = layer(weights, f"{name}.message.", 1)
        new, new_bias = layer(weights, f"{name}.node.", 0)
        self.last, self.last_bias = layer(weights, f"{name}.node.", 1)
        inputs, self.units = len(pair) // 2, pair.shape[1]
        # For each node: as a sender, as a receiver, and its own part of the new vector.
        self.alone = np.concatenate([pair[:inputs], pair[inputs:], new[:inputs]], axis=1)
        self.alone_bias = np.concatenate([0 * pair_bias, pair_bias, new_bias])
        self.heard, self.heard_bias = told @ new[inputs:], told_bias @ new[inputs:]

    def __call__(self, nodes: np.ndarray, count: int) -> np.ndarray:
        """The new vectors of the first `count` nodes."""
        alone = nodes @ self.alone + self.alone_bias
        send = alone[:, : self.units]
        receive, own = alone[:count, self.units : 2 * self.units], alone[:count, 2 * self.units :]
        pairs = relu(send[:, None] + receive)  # [sender, receiver, unit]
        total = pairs.sum(axis=0) - relu(send[:count] + receive)  # nobody hears itself
        new = own + total @ self.heard + (len(nodes) - 1) * self.heard_bias
        return relu(new) @ self.last + self.last_bias


class Hunting:
    """The network of a hunter that learned, over all hunters and prey."""

    def __init__(self, name: str):
        weights = load_file(WEIGHTS / f"{name}.safetensors")
        self.first, self.second = Block(weights, "first"), Block(weights, "second")
        self.readout = [layer(weights, "readout.", k) for k in range(2)]

    def numbers(self, hunters: list[Cell], prey: list[Cell], facing: list[int]) -> np.ndarray:
        """A number for each action of each hunter, [hunter, action]; nobody is absent here."""
        nodes = [(row / 10, col / 10, 1, 0, 0, 0, 0, 0) for row, col in hunters]
        for (row, col), way in zip(prey, facing, strict=True):
            nodes.append((row / 10, col / 10, 0, 1, way == 0, way == 1, way == 2, way == 3))
        nodes = np.array(nodes, np.float32)
        x = relu(self.first(nodes, len(nodes)))
        x = relu(self.second(x, len(hunters)))
        (weight, bias), (last, last_bias) = self.readout
        return relu(x @ weight + bias) @ last + last_bias


# The weights are read once.
fleeing, hunting = cache(Fleeing), cache(Hunting)


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

    If `learned`, teammates may also be of the types H5 and H6, and prey flee by their networks.
    """

    def __init__(
        self,
        rules="paper",
        team_limit=3,
        slots=None,
        seed=0,
        size=10,
        prey=2,
        horizon=200,
        penalty=0.5,
        shaping=None,
        learned=False,
    ):
        if rules not in ("paper", "reference"):
            raise ValueError(f"rules must be 'paper' or 'reference', not {rules!r}")
        slots = team_limit if slots is None else slots
        if not 2 <= team_limit <= slots:
            raise ValueError(f"need 2 <= team_limit <= slots, not {team_limit} and {slots}")
        self.rules, self.team_limit, self.slots = rules, team_limit, slots
        self.size, self.prey_count, self.horizon = size, prey, horizon
        if shaping is None:
            shaping = 0.01 if rules == "reference" else 0.0
        self.penalty, self.shaping = penalty, shaping
        self.pool = tuple(sorted(TYPES + LEARNED)) if learned else TYPES
        self.fleeing = fleeing(size, prey) if learned else None
        self.hunting = {name: hunting(name) for name in LEARNED} if learned else {}
        # What each network said last, and where everybody was then.
        self.known: dict[str, tuple[tuple, np.ndarray]] = {}
        self.rng = np.random.default_rng(seed)
        self.reset()

    def reset(self) -> None:
        """Start an episode, under the paper rules with the full team, else with three at most."""
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
        self.prey = self._draw_free(self.prey_count)
        self.facing = [UP] * self.prey_count
        self.captured = [False] * self.prey_count

    def _between(self, low: int, high: int) -> int:
        """A uniform integer, both ends included."""
        return int(self.rng.integers(low, high + 1))

    def _occupied(self) -> set[Cell]:
        """The cells of all hunters and prey, also of prey just captured."""
        return {cell for cell in self.hunters if cell is not None}.union(self.prey)

    def _draw_free(self, count: int) -> list[Cell]:
        """Different random cells that hold neither a hunter nor a prey."""
        occupied, lines = self._occupied(), range(self.size)
        free = [(row, col) for row in lines for col in lines if (row, col) not in occupied]
        if count > len(free):
            raise ValueError(f"{count} free cells are needed, {len(free)} are left")
        return [free[i] for i in self.rng.choice(len(free), size=count, replace=False)]

    def _present(self) -> list[int]:
        """The slots that are not empty."""
        return [slot for slot, cell in enumerate(self.hunters) if cell is not None]

    def team_size(self) -> int:
        """Number of hunters present, the learner included."""
        return len(self._present())

    def respawn(self, cells: dict[int, Cell] | None = None) -> None:
        """Captured prey go to new cells, random ones or one given for each; none is captured then.

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
        self.captured = [False] * self.prey_count

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
            shaping[slot] = self.shaping * (before[slot] - distance)
            rewards[slot] += shaping[slot]
        return rewards, shaping, self.time >= self.horizon

    def _prey_distances(self) -> dict[int, int]:
        """For each hunter the distance to the nearest prey, captured or not."""
        return {
            slot: min(manhattan(self.hunters[slot], prey) for prey in self.prey)
            for slot in self._present()
        }

    def _inside(self, cell: Cell) -> bool:
        """Whether a cell is on the grid."""
        return 0 <= cell[0] < self.size and 0 <= cell[1] < self.size

    def _move(self, actions, prey_actions) -> None:
        """All move at once; all who meet in a cell go back, until nobody meets.

        Whoever would leave the grid stays. Two may swap cells, and turns are never undone.
        """
        present = self._present()
        old = [self.hunters[slot] for slot in present] + self.prey
        moves = [int(actions[slot]) for slot in present]
        for i in range(self.prey_count):
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
        """Two or more hunters next to a prey capture it and each get twice their number.

        A hunter alone next to a prey pays the penalty.
        """
        rewards = [0.0] * self.slots
        present = self._present()
        for i, prey in enumerate(self.prey):
            pack = [slot for slot in present if manhattan(self.hunters[slot], prey) == 1]
            self.captured[i] = len(pack) >= 2
            for slot in pack:
                rewards[slot] += 2.0 * len(pack) if self.captured[i] else -self.penalty
        return rewards

    def distribution(
        self, name: str, slot: int, radius: int | None = None, threshold: int | None = None
    ) -> np.ndarray:
        """Probabilities of the actions of a hunter of a type, here and now.

        H1 acts at random, H2 and H3 are greedy, H4 shares out the cells next to the prey. H7, H8
        and H9 are these three in turn, but wait for others close to a prey; only they use the
        radius and the threshold, by default those of the slot. H5 draws by the softmax of what its
        network says, H6 takes the best.
        """
        if name not in self.pool:
            raise ValueError(f"unknown type {name!r}")
        me = self.hunters[slot]
        if me is None:
            raise ValueError(f"slot {slot} is empty")
        if name in LEARNED:
            numbers = self.numbers(name)[slot]
            return certain(int(numbers.argmax())) if name == "H6" else softmax(numbers)

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

    def numbers(self, name: str) -> np.ndarray:
        """What the network of a type says of each slot and action; nan for empty slots.

        It is the same for all hunters, so it is kept until somebody moves.
        """
        place = (*self.hunters, *self.prey, *self.facing)
        before, numbers = self.known.get(name, (None, None))
        if before != place:
            present = self._present()
            hunters = [self.hunters[slot] for slot in present]
            numbers = np.full((self.slots, 5), np.nan, np.float32)
            numbers[present] = self.hunting[name].numbers(hunters, self.prey, self.facing)
            self.known[name] = place, numbers
        return numbers

    def _nearest(self, me: Cell, alive: list[Cell]) -> tuple[Cell, Cell]:
        """The nearest cell next to a prey that is alive, the first one on ties, and this prey."""
        order = (LEFT, RIGHT, DOWN, UP)
        pairs = [(cell, prey) for prey in alive for cell in around(prey, self.size, order)]
        return min(pairs, key=lambda pair: manhattan(me, pair[0]))

    def _is_waiting(self, slot: int, prey: Cell, radius: int, threshold: int) -> bool:
        """Whether a hunter is near its prey while too few others are."""
        if manhattan(self.hunters[slot], prey) > radius:
            return False
        others = [self.hunters[k] for k in self._present() if k != slot]
        return sum(manhattan(other, prey) <= radius for other in others) < threshold

    def _retreat(self, me: Cell, prey: Cell) -> np.ndarray:
        """Away from a prey."""
        rows, cols = me[0] - prey[0], me[1] - prey[1]
        vertical = UP if rows < 0 else DOWN
        horizontal = RIGHT if cols > 0 else LEFT
        return self._larger_gap(me, abs(rows), vertical, abs(cols), horizontal)

    def _greedy(self, me: Cell, target: Cell) -> np.ndarray:
        """Towards a target, whatever is in the way."""
        rows, cols = me[0] - target[0], me[1] - target[1]
        vertical = DOWN if rows < 0 else UP
        horizontal = LEFT if cols > 0 else RIGHT
        return self._larger_gap(me, abs(rows), vertical, abs(cols), horizontal)

    def _larger_gap(
        self, me: Cell, rows: int, vertical: int, cols: int, horizontal: int
    ) -> np.ndarray:
        """The move along the larger gap, by column on ties, among those that stay on the grid.

        Any of the four moves if both would leave the grid.
        """
        wanted = (vertical, horizontal) if rows > cols else (horizontal, vertical)
        for move in wanted:
            if self._inside(shifted(me, move)):
                return certain(move)
        return uniform(4)

    def _probabilistic(self, me: Cell, target: Cell) -> np.ndarray:
        """An axis by a softmax of the gaps, then towards the target.

        Paper: an axis without a gap is never chosen.
        Reference: it may be, and the move is often away from the target, even off the grid.
        """
        rows, cols = me[0] - target[0], me[1] - target[1]
        axes = [(abs(rows), UP if rows > 0 else DOWN), (abs(cols), LEFT if cols > 0 else RIGHT)]
        if self.rules == "paper":
            axes = [(gap, good) for gap, good in axes if gap > 0]
        total = sum(exp(gap / 2.5) for gap, _ in axes)
        chances = np.zeros(5)
        for gap, good in axes:
            axis, bad = exp(gap / 2.5) / total, (good + 2) % 4
            towards = 1.0
            if self.rules == "reference":
                towards = 1 / (1 + exp((self._value(me, good, -1) - self._value(me, bad, 1)) / 2.5))
            chances[good] += axis * towards
            chances[bad] += axis * (1 - towards)
        return chances

    def _value(self, me: Cell, move: int, change: int) -> int:
        """What H3 of the reference expects of a move: the change of distance, 5 more off grid."""
        return change + (0 if self._inside(shifted(me, move)) else 5)

    def _aware(self, slot: int) -> np.ndarray:
        """Along a path to the cell that this hunter gets, at random if it gets none or is cut off.

        The cells next to the prey, captured or not, are shared out: hunters whose farthest cell is
        farthest choose first, and each takes the nearest one left. On its cell a hunter steps
        towards the prey.
        """
        prey_at: dict[Cell, Cell] = {}
        for prey in self.prey:
            for cell in around(prey, self.size, (RIGHT, LEFT, DOWN, UP)):
                prey_at.setdefault(cell, prey)
        goal = self._assigned(list(prey_at)).get(slot)
        me = self.hunters[slot]
        if goal is None:
            return uniform()
        if goal == me:
            return certain(step_towards(me, prey_at[goal]))
        if self.rules == "paper":
            steps = shortest_first_steps(me, goal, self._occupied(), self.size)
            return certain(steps[0]) if steps else uniform()
        step = reference_first_step(me, goal, self._occupied(), self.size)
        return uniform() if step is None else certain(step)

    def _assigned(self, cells: list[Cell]) -> dict[int, Cell]:
        """Which hunter gets which of the cells, by slot; the first ones on ties."""
        distances = {
            slot: [manhattan(self.hunters[slot], cell) for cell in cells]
            for slot in self._present()
        }
        left = list(range(len(cells)))
        assigned = {}
        for slot in sorted(distances, key=lambda k: -max(distances[k])):
            if left:
                chosen = min(left, key=distances[slot].__getitem__)
                left.remove(chosen)
                assigned[slot] = cells[chosen]
        return assigned

    def choose(self, slot: int) -> int:
        """Draw the action of the teammate in a slot."""
        return int(self.rng.choice(5, p=self.distribution(self.types[slot], slot)))

    def open_process(self) -> tuple[list[int], list[int]]:
        """Teammates leave, then others enter; returns the slots left and the slots entered.

        One teammate always stays; if more are due, chance decides who leaves, the others stay due.
        Paper: due is who has no steps left, and everyone comes back after a wait.
        Reference: due is who stayed more than 25 steps, and only rare events let agents leave or
        enter.
        """
        paper = self.rules == "paper"
        self._tick()

        present = self._present()[1:]
        due = [k for k in present if (self.counters[k] <= 0 if paper else self.counters[k] > 25)]
        most = len(present) - 1
        left = self._pick(due, most if paper else min(most, self._event()))
        for slot in left:
            for per_slot in (self.hunters, self.types, self.radius, self.threshold, self.counters):
                per_slot[slot] = None

        # Those present and those who wait add up to the limit, so whoever is back finds room.
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

    def _tick(self) -> None:
        """Count one step for every agent but the learner."""
        change = -1 if self.rules == "paper" else 1
        self.counters = [None if count is None else count + change for count in self.counters]
        self.waiting = [steps - 1 for steps in self.waiting]

    def _event(self) -> int:
        """How many agents an event of the reference rules concerns, 0 if there is no event."""
        if self.rng.random() >= 0.05:
            return 0
        return 1 if self.rng.random() < 0.7 else 2

    def _pick(self, candidates: list[int], most: int) -> list[int]:
        """All candidates, or a random choice of `most` of them if there are more; sorted."""
        if len(candidates) <= most:
            return candidates
        return sorted(self.rng.choice(candidates, size=max(most, 0), replace=False).tolist())

    def _enter(self, slot: int) -> None:
        """A teammate with a new cell, type, radius, threshold and counter takes a slot."""
        [self.hunters[slot]] = self._draw_free(1)
        self.types[slot] = self.pool[self._between(0, len(self.pool) - 1)]
        if self.rules == "paper":
            self.radius[slot], self.threshold[slot] = self._between(3, 5), 1
            self.counters[slot] = self._between(25, 35)
        else:
            self.radius[slot] = int(self.rng.choice((2, 3, 4), p=(0.4, 0.4, 0.2)))
            self.threshold[slot] = 1 if self.rng.random() < 0.7 else 2
            self.counters[slot] = 0

    def flee(self) -> list[int]:
        """The action of each prey that learned: what it values most, or anything if it stumbles."""
        actions = self.fleeing.values(self).argmax(axis=1).tolist()
        for i, chance in enumerate(self.rng.random(self.prey_count)):
            if chance < STUMBLES:
                actions[i] = self._between(0, PREY_ACTIONS - 1)
        return actions

    def step(self, learner_action: int, prey_actions=None) -> tuple[float, bool]:
        """Teammates choose, all act, the team changes; a finished episode starts anew.

        Prey that learned choose for themselves if no actions are given, on what they see before
        those captured reappear.
        """
        if prey_actions is None:
            if self.fleeing is None:
                raise ValueError("prey that did not learn have to be given their actions")
            prey_actions = self.flee()
        actions = [STAY] * self.slots
        actions[0] = learner_action
        for slot in self._present()[1:]:
            actions[slot] = self.choose(slot)
        rewards, _, truncated = self.act(actions, prey_actions)
        self.open_process()
        if truncated:
            self.reset()
        return rewards[0], truncated
