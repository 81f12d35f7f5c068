"""Level-based foraging with open teams, one environment, in plain Python.

The tests compare the fast implementation with this one, and the benchmark uses it as the baseline.
It is written from the rules of the game alone and shares no code with what it checks.
So that it can be compared exactly, `act` is deterministic and `distribution` gives the choice of a
teammate as probabilities.
"""

import numpy as np

NONE, NORTH, SOUTH, WEST, EAST, LOAD = range(6)
TYPES = ("H1", "H2", "H3", "H4", "H6", "H7", "H8", "H9")
MOVES = {NORTH: (-1, 0), SOUTH: (1, 0), WEST: (0, -1), EAST: (0, 1)}

Cell = tuple[int, int]


def manhattan(a, b) -> int:
    """Steps between two cells; further entries (a level) are ignored."""
    return abs(a[0] - b[0]) + abs(a[1] - b[1])


def squared(a, b) -> int:
    """Squared Euclidean distance between two cells; further entries are ignored."""
    return (a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2


def closest(cell, objects):
    """The object closest to a cell, the first one on ties."""
    return min(objects, key=lambda thing: squared(cell, thing))


def farthest(cell, objects):
    """The object farthest from a cell, the first one on ties."""
    return max(objects, key=lambda thing: squared(cell, thing))


def eligible_highest(level: int, objects):
    """The highest object not above a level, or of all if none is; the first one on ties."""
    eligible = [thing for thing in objects if thing[2] <= level]
    return max(eligible or objects, key=lambda thing: thing[2])


class SlowLBF:
    """One game. Slot 0 is the learner, the other slots hold teammates or are empty.

    players: per slot None or [row, col, level]
    objects: [row, col, level] of each object still there, in row-major order
    time: steps taken in this episode
    types: per slot the name of the teammate's type, or None
    sight: per slot the radius of the square a teammate sees, None for the whole grid
    counters: per slot the open-process counter of the teammate there, or None
    waiting: one counter for each agent that exists but is absent
    """

    def __init__(
        self, rules="paper", team_limit=3, slots=None, seed=0, size=8, objects=3, horizon=50
    ):
        if rules not in ("paper", "reference"):
            raise ValueError(f"rules must be 'paper' or 'reference', not {rules!r}")
        slots = team_limit if slots is None else slots
        if not 2 <= team_limit <= slots:
            raise ValueError(f"need 2 <= team_limit <= slots, not {team_limit} and {slots}")
        self.rules, self.team_limit, self.slots = rules, team_limit, slots
        self.size, self.object_count, self.horizon = size, objects, horizon
        self.rng = np.random.default_rng(seed)
        if rules == "reference":
            self.agents, self.highest_level = max(5, team_limit), 2
            self.agent_lines, self.object_lines = range(size - 1), range(1, size - 1)
            self.active_range, self.waiting_range = (10, 19), (15, 24)
        else:
            self.agents, self.highest_level = team_limit, 3
            self.agent_lines, self.object_lines = range(size), range(size)
            self.active_range, self.waiting_range = (15, 25), (10, 20)
        self.reset()

    def reset(self) -> None:
        """Start an episode with the full team: all players are placed first, then the objects."""
        self.time = 0
        self.players: list[list[int] | None] = [None] * self.slots
        self.objects: list[list[int]] = []
        self.types: list[str | None] = [None] * self.slots
        self.sight: list[int | None] = [None] * self.slots
        self.counters: list[int | None] = [None] * self.slots
        self._place_player(0)
        for slot in range(1, self.team_limit):
            self._enter(slot)
        self.waiting = [
            self._between(*self.waiting_range) for _ in range(self.agents - self.team_limit)
        ]
        self._place_objects()

    def _between(self, low: int, high: int) -> int:
        """A uniform integer, both ends included."""
        return int(self.rng.integers(low, high + 1))

    def _free(self, lines) -> list[Cell]:
        """Cells in the given rows and columns that hold neither a player nor an object."""
        present = [player for player in self.players if player is not None]
        occupied = {(thing[0], thing[1]) for thing in present + self.objects}
        return [(row, col) for row in lines for col in lines if (row, col) not in occupied]

    def _place_player(self, slot: int) -> None:
        """Put a player of a random level on a random free cell."""
        free = self._free(self.agent_lines)
        if not free:
            raise ValueError("no free cell is left for a player")
        row, col = free[self._between(0, len(free) - 1)]
        self.players[slot] = [row, col, self._between(1, self.highest_level)]

    def _place_objects(self) -> None:
        """Put objects on random free cells at least 3 steps apart, fewer if no cell is left.

        Under the reference rules a level is below the sum of the levels of the initial team.
        """
        highest = 3
        if self.rules == "reference":
            highest = sum(player[2] for player in self.players if player is not None) - 1
        for _ in range(self.object_count):
            legal = [
                cell
                for cell in self._free(self.object_lines)
                if all(manhattan(cell, thing) >= 3 for thing in self.objects)
            ]
            if not legal:
                break
            row, col = legal[self._between(0, len(legal) - 1)]
            self.objects.append([row, col, self._between(1, highest)])
        self.objects.sort()

    def team_size(self) -> int:
        """Number of players present, the learner included."""
        return sum(player is not None for player in self.players)

    def valid(self, slot: int) -> list[bool]:
        """Which actions a player may take; other players never matter, an empty slot has NONE.

        A move must stay on the grid and off the objects, LOAD needs an object next to the player.
        """
        flags = [True] + [False] * 5
        player = self.players[slot]
        if player is None:
            return flags
        object_cells = {(row, col) for row, col, _ in self.objects}
        for action, (down, right) in MOVES.items():
            row, col = player[0] + down, player[1] + right
            inside = 0 <= row < self.size and 0 <= col < self.size
            flags[action] = inside and (row, col) not in object_cells
        flags[LOAD] = any(manhattan(player, thing) == 1 for thing in self.objects)
        return flags

    def act(self, actions) -> tuple[list[float], bool, bool]:
        """Move, load and count the step; an invalid action counts as NONE.

        Returns the reward of each slot, whether all objects are gone, and whether time ran out
        before that.
        """
        self.time += 1
        executed = {}
        for slot, player in enumerate(self.players):
            if player is not None:
                action = int(actions[slot])
                executed[slot] = action if self.valid(slot)[action] else NONE
        self._move(executed)
        rewards = self._load(executed)
        terminated = not self.objects
        truncated = self.time >= self.horizon and not terminated
        return rewards, terminated, truncated

    def _move(self, executed: dict[int, int]) -> None:
        """Each player names a cell, its own if it stays; a cell named only once is entered.

        Only names count: a player may enter a cell whose occupant wanted to leave but could not.
        """
        named = {}
        for slot, action in executed.items():
            down, right = MOVES.get(action, (0, 0))
            row, col, _ = self.players[slot]
            named[slot] = (row + down, col + right)
        names = list(named.values())
        for slot, cell in named.items():
            if names.count(cell) == 1:
                self.players[slot] = [cell[0], cell[1], self.players[slot][2]]

    def _load(self, executed: dict[int, int]) -> list[float]:
        """An object goes if the levels of those who load it reach its own; each gets its level."""
        rewards = [0.0] * self.slots
        remaining = []
        for thing in self.objects:
            loaders = [
                slot
                for slot, action in executed.items()
                if action == LOAD and manhattan(self.players[slot], thing) == 1
            ]
            if loaders and sum(self.players[slot][2] for slot in loaders) >= thing[2]:
                for slot in loaders:
                    rewards[slot] += float(thing[2])
            else:
                remaining.append(thing)
        self.objects = remaining
        return rewards

    def distribution(self, name: str, slot: int, sight: int | None = None) -> np.ndarray:
        """Probabilities of the actions of a teammate of a type, here and now.

        It sees the players and objects whose row and column differ from its own by at most
        `sight`, itself included, and acts at random if its rule gives no target.
        """
        if name not in TYPES:
            raise ValueError(f"unknown type {name!r}")
        me = self.players[slot]
        if me is None:
            raise ValueError(f"slot {slot} is empty")

        def sees(thing):
            return sight is None or max(abs(thing[0] - me[0]), abs(thing[1] - me[1])) <= sight

        objects = [thing for thing in self.objects if sees(thing)]
        seen = [k for k, player in enumerate(self.players) if player is not None and sees(player)]
        if name in ("H1", "H2"):
            return self._follow(name, slot, seen, objects)
        target = self._target(name, me, [self.players[k] for k in seen], objects)
        return self._random(slot) if target is None else self._approach(slot, target)

    def _target(self, name: str, me, players, objects):
        """The object a teammate wants, judging by what it sees; None if there is none.

        H3: the highest object not above its own level, or the highest of all if none is.
        H4: the farthest object.
        H6: the closest object.
        H7: the object closest to the rounded mean position of the players.
        H8: the closest object not above its own level.
        H9: like H7, among the objects not above the sum of the levels of the players.
        """
        if name == "H8":
            objects = [thing for thing in objects if thing[2] <= me[2]]
        if name == "H9":
            strength = sum(player[2] for player in players)
            objects = [thing for thing in objects if thing[2] <= strength]
        if not objects:
            return None
        if name == "H3":
            return eligible_highest(me[2], objects)
        if name == "H4":
            return farthest(me, objects)
        if name in ("H6", "H8"):
            return closest(me, objects)
        row = round(sum(player[0] for player in players) / len(players))
        col = round(sum(player[1] for player in players) / len(players))
        return closest((row, col), objects)

    def _follow(self, name: str, slot: int, seen: list[int], objects) -> np.ndarray:
        """H1 and H2 want what their leader would want, or the leader's cell if they see no object.

        For H1 the leader goes for the highest object it can lift alone (as H3 does), for H2 for
        the object farthest from it (as H4 does). Leaders that tie are equally likely.
        """
        if seen == [slot]:
            return self._random(slot)
        leaders = self._leaders(name, slot, seen)
        total = np.zeros(6)
        for leader in leaders:
            cell = self.players[leader]
            if not objects:
                total += self._approach(slot, cell, load=False)
            elif name == "H1":
                target = eligible_highest(self._leader_level(leader), objects)
                total += self._approach(slot, target)
            else:
                total += self._approach(slot, farthest(cell, objects))
        return total / len(leaders)

    def _leaders(self, name: str, slot: int, seen: list[int]) -> list[int]:
        """H1: the highest of the players above its own level, the first one on ties.

        H2, and H1 if nobody is above its level: every player at the largest distance.
        """
        me = self.players[slot]
        above = [k for k in seen if self.players[k][2] > me[2]]
        if name == "H1" and above:
            return [max(above, key=lambda k: self.players[k][2])]
        largest = max(squared(me, self.players[k]) for k in seen)
        return [k for k in seen if squared(me, self.players[k]) == largest]

    def _leader_level(self, leader: int) -> int:
        """The leader's level; under the reference rules that of the last player on its cell."""
        row, col, level = self.players[leader]
        if self.rules == "reference":
            for player in self.players:
                if player is not None and (player[0], player[1]) == (row, col):
                    level = player[2]
        return level

    def _random(self, slot: int) -> np.ndarray:
        """Every valid action with the same probability."""
        flags = np.array(self.valid(slot), dtype=float)
        return flags / flags.sum()

    def _approach(self, slot: int, target, load: bool = True) -> np.ndarray:
        """Load a target one step away, else move by row, else by column, else at random."""
        row, col, _ = self.players[slot]
        flags = self.valid(slot)
        vertical = NORTH if target[0] < row else SOUTH
        horizontal = WEST if target[1] < col else EAST
        if load and manhattan((row, col), target) == 1:
            action = LOAD
        elif target[0] != row and flags[vertical]:
            action = vertical
        elif target[1] != col and flags[horizontal]:
            action = horizontal
        else:
            return self._random(slot)
        return np.eye(6)[action]

    def choose(self, slot: int) -> int:
        """Draw the action of the teammate in a slot."""
        chances = self.distribution(self.types[slot], slot, self.sight[slot])
        return int(self.rng.choice(6, p=chances))

    def open_process(self) -> tuple[list[int], list[int]]:
        """Teammates leave, then others enter; returns the slots left and the slots entered.

        Those whose counter has run out are due. At most so many leave that one teammate stays,
        at most so many enter that the team limit holds, chosen at random; the others stay due.
        Paper: a counter is the number of steps left and ticks before the changes.
        Reference: a counter must have passed zero and ticks after the changes.
        """
        if self.rules == "paper":
            self._tick()

        present = [k for k in range(1, self.slots) if self.players[k] is not None]
        due = [k for k in present if self._is_due(self.counters[k])]
        left = self._pick(due, self.team_size() - 2)
        returning = [i for i, counter in enumerate(self.waiting) if self._is_due(counter)]
        for slot in left:
            for per_slot in (self.players, self.types, self.sight, self.counters):
                per_slot[slot] = None

        returned = self._pick(returning, self.team_limit - self.team_size())
        self.waiting = [counter for i, counter in enumerate(self.waiting) if i not in returned]
        self.waiting += [self._between(*self.waiting_range) for _ in left]
        free = [k for k in range(1, self.slots) if self.players[k] is None]
        entered = free[: len(returned)]
        for slot in entered:
            self._enter(slot)

        if self.rules == "reference":
            self._tick()
        return left, entered

    def _tick(self) -> None:
        """Count one step for every agent but the learner."""
        self.counters = [None if counter is None else counter - 1 for counter in self.counters]
        self.waiting = [counter - 1 for counter in self.waiting]

    def _is_due(self, counter: int) -> bool:
        """Whether an agent with this counter is to change between present and absent."""
        return counter < 0 if self.rules == "reference" else counter <= 0

    def _pick(self, candidates: list[int], most: int) -> list[int]:
        """All candidates, or a random choice of `most` of them if there are more; sorted."""
        if len(candidates) <= most:
            return candidates
        return sorted(self.rng.choice(candidates, size=max(most, 0), replace=False).tolist())

    def _enter(self, slot: int) -> None:
        """A teammate with a new level, cell, type, sight and time to stay takes a slot."""
        self._place_player(slot)
        self.types[slot] = TYPES[self._between(0, len(TYPES) - 1)]
        self.sight[slot] = self._between(1, 3) if self.rules == "paper" else None
        self.counters[slot] = self._between(*self.active_range)

    def step(self, learner_action: int) -> tuple[float, bool, bool]:
        """Teammates choose, all act, the team changes; a finished episode starts anew."""
        actions = [NONE] * self.slots
        actions[0] = learner_action
        for slot in range(1, self.slots):
            if self.players[slot] is not None:
                actions[slot] = self.choose(slot)
        rewards, terminated, truncated = self.act(actions)
        self.open_process()
        if terminated or truncated:
            self.reset()
        return rewards[0], terminated, truncated
