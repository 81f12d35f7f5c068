"""Level-based foraging with open teams, one environment, in plain Python.

The tests compare the fast implementation with this one, and the benchmark uses it as the baseline.
It is written from the rules of the game alone and shares no code with what it checks.
So that both can be compared exactly, `act` is deterministic and `distribution` returns the
probabilities of a teammate's actions.
"""

from collections.abc import Iterable, Sequence

import numpy as np

NONE, NORTH, SOUTH, WEST, EAST, LOAD = range(6)
TYPES = ("H1", "H2", "H3", "H4", "H6", "H7", "H8", "H9")
MOVES = {NORTH: (-1, 0), SOUTH: (1, 0), WEST: (0, -1), EAST: (0, 1)}

Cell = tuple[int, int]
Row = Sequence[int]
"""Row and column of a player or an object and, if it is needed, its level."""


def manhattan(a: Row, b: Row) -> int:
    """Return the number of steps between two cells; a level is ignored."""
    return abs(a[0] - b[0]) + abs(a[1] - b[1])


def squared(a: Row, b: Row) -> int:
    """Return the squared Euclidean distance between two cells; a level is ignored."""
    return (a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2


def closest(cell: Row, objects: Sequence[Row]) -> Row:
    """Return the object closest to a cell, the first one on ties."""
    return min(objects, key=lambda thing: squared(cell, thing))


def farthest(cell: Row, objects: Sequence[Row]) -> Row:
    """Return the object farthest from a cell, the first one on ties."""
    return max(objects, key=lambda thing: squared(cell, thing))


def eligible_highest(level: int, objects: Sequence[Row]) -> Row:
    """Return the highest object up to a level, or else the highest of all, the first on ties."""
    eligible = [thing for thing in objects if thing[2] <= level]
    return max(eligible or objects, key=lambda thing: thing[2])


class SlowLBF:
    """One game. Slot 0 is the learner, the other slots hold teammates or are empty.

    Attributes:
        players: For each slot None or [row, column, level].
        objects: [row, column, level] of each object that is left, row by row over the grid.
        time: Steps taken in this episode.
        types: For each slot the name of the teammate's type, or None.
        sight: For each slot the radius of the square a teammate sees; None for the whole grid.
        counters: For each slot the teammate's counter of the open process, or None.
        waiting: A counter for each agent that exists but is absent.
    """

    def __init__(
        self,
        rules: str = "paper",
        team_limit: int = 3,
        slots: int | None = None,
        seed: int = 0,
        size: int = 8,
        objects: int = 3,
        horizon: int = 50,
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
        """Draw an integer uniformly, both ends included."""
        return int(self.rng.integers(low, high + 1))

    def _player(self, slot: int) -> list[int]:
        """Return [row, column, level] of the player in a slot that is not empty."""
        player = self.players[slot]
        if player is None:
            raise ValueError(f"slot {slot} is empty")
        return player

    def _free(self, lines: Iterable[int]) -> list[Cell]:
        """Return the cells of the given rows and columns without a player or an object."""
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
        """Return the number of players present, the learner included."""
        return sum(player is not None for player in self.players)

    def valid(self, slot: int) -> list[bool]:
        """Return which actions a player may take; in an empty slot only NONE.

        A move has to stay on the grid and off the objects, LOAD needs an object next to the
        player. Other players do not matter.
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

    def act(self, actions: Sequence[int] | np.ndarray) -> tuple[list[float], bool, bool]:
        """Move, load and count the step; an invalid action counts as NONE.

        Returns:
            The reward of each slot, whether all objects are gone, and whether time ran out before
            that.
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
            row, col, _ = self._player(slot)
            named[slot] = (row + down, col + right)
        names = list(named.values())
        for slot, cell in named.items():
            if names.count(cell) == 1:
                self.players[slot] = [cell[0], cell[1], self._player(slot)[2]]

    def _load(self, executed: dict[int, int]) -> list[float]:
        """Remove each object that is loaded with enough strength; its loaders get its level."""
        rewards = [0.0] * self.slots
        remaining = []
        for thing in self.objects:
            loaders = [
                slot
                for slot, action in executed.items()
                if action == LOAD and manhattan(self._player(slot), thing) == 1
            ]
            if loaders and sum(self._player(slot)[2] for slot in loaders) >= thing[2]:
                for slot in loaders:
                    rewards[slot] += float(thing[2])
            else:
                remaining.append(thing)
        self.objects = remaining
        return rewards

    def distribution(self, name: str, slot: int, sight: int | None = None) -> np.ndarray:
        """Return the probabilities of the actions of a teammate in the current state.

        A teammate acts at random if its rule gives no target.

        Args:
            name: The teammate's type.
            slot: Its slot.
            sight: It sees the players and objects whose row and column differ from its own by at
                most this, itself included; None for the whole grid.
        """
        if name not in TYPES:
            raise ValueError(f"unknown type {name!r}")
        me = self._player(slot)

        def sees(thing: Row) -> bool:
            return sight is None or max(abs(thing[0] - me[0]), abs(thing[1] - me[1])) <= sight

        objects = [thing for thing in self.objects if sees(thing)]
        seen = [k for k, player in enumerate(self.players) if player is not None and sees(player)]
        if name in ("H1", "H2"):
            return self._follow(name, slot, seen, objects)
        target = self._target(name, me, [self._player(k) for k in seen], objects)
        return self._random(slot) if target is None else self._approach(slot, target)

    def _target(
        self, name: str, me: Row, players: Sequence[Row], objects: Sequence[Row]
    ) -> Row | None:
        """Return the object a teammate wants, of those it sees; None if it wants none.

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

    def _follow(self, name: str, slot: int, seen: list[int], objects: Sequence[Row]) -> np.ndarray:
        """Return the probabilities of the actions of H1 and H2.

        They want what their leader would want, or the leader's cell if they see no object.

        For H1 the leader goes for the highest object it can lift alone (as H3 does), for H2 for
        the object farthest from it (as H4 does). Leaders that tie are equally likely.
        """
        if seen == [slot]:
            return self._random(slot)
        leaders = self._leaders(name, slot, seen)
        total = np.zeros(6)
        for leader in leaders:
            cell = self._player(leader)
            if not objects:
                total += self._approach(slot, cell, load=False)
            elif name == "H1":
                target = eligible_highest(self._leader_level(leader), objects)
                total += self._approach(slot, target)
            else:
                total += self._approach(slot, farthest(cell, objects))
        return total / len(leaders)

    def _leaders(self, name: str, slot: int, seen: list[int]) -> list[int]:
        """Return the slots of the possible leaders.

        H1: the highest of the players above its own level, the first one on ties.
        H2, and H1 if nobody is above its level: every player at the largest distance.
        """
        me = self._player(slot)
        above = [k for k in seen if self._player(k)[2] > me[2]]
        if name == "H1" and above:
            return [max(above, key=lambda k: self._player(k)[2])]
        largest = max(squared(me, self._player(k)) for k in seen)
        return [k for k in seen if squared(me, self._player(k)) == largest]

    def _leader_level(self, leader: int) -> int:
        """Return the leader's level; under `reference` that of the last player on its cell."""
        row, col, level = self._player(leader)
        if self.rules == "reference":
            for player in self.players:
                if player is not None and (player[0], player[1]) == (row, col):
                    level = player[2]
        return level

    def _random(self, slot: int) -> np.ndarray:
        """Return the same probability for every valid action."""
        flags = np.array(self.valid(slot), dtype=float)
        return flags / flags.sum()

    def _approach(self, slot: int, target: Row, load: bool = True) -> np.ndarray:
        """Load a target one step away, else move by row, else by column, else at random."""
        row, col, _ = self._player(slot)
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

    def select_action(self, slot: int) -> int:
        """Draw the action of the teammate in a slot."""
        name = self.types[slot]
        if name is None:
            raise ValueError(f"slot {slot} holds no teammate")
        probs = self.distribution(name, slot, self.sight[slot])
        return int(self.rng.choice(6, p=probs))

    def open_process(self) -> tuple[list[int], list[int]]:
        """Let teammates leave, then let others enter.

        Agents whose counter has run out are due. If more are due to leave than may while one
        teammate stays, or more to enter than the team limit allows, the choice is random and the
        others stay due.
        Paper: a counter is the number of steps left and ticks before the changes.
        Reference: a counter must have passed zero and ticks after the changes.

        Returns:
            The slots that were left and the slots that were entered.
        """
        if self.rules == "paper":
            self._tick()

        due = [
            slot
            for slot, counter in enumerate(self.counters)
            if counter is not None and self._is_due(counter)
        ]
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
        """Return whether an agent with this counter is due to leave or to enter."""
        return counter < 0 if self.rules == "reference" else counter <= 0

    def _pick(self, candidates: list[int], most: int) -> list[int]:
        """Return all candidates, or a random choice of `most` of them if there are more, sorted."""
        if len(candidates) <= most:
            return candidates
        return sorted(self.rng.choice(candidates, size=max(most, 0), replace=False).tolist())

    def _enter(self, slot: int) -> None:
        """Put a teammate with a new level, cell, type, sight and counter into a slot."""
        self._place_player(slot)
        self.types[slot] = TYPES[self._between(0, len(TYPES) - 1)]
        self.sight[slot] = self._between(1, 3) if self.rules == "paper" else None
        self.counters[slot] = self._between(*self.active_range)

    def step(self, learner_action: int) -> tuple[float, bool, bool]:
        """Let all act and the team change; start the next episode if this one has ended.

        Returns:
            The learner's reward, and whether the episode was terminated or truncated.
        """
        actions = [NONE] * self.slots
        actions[0] = learner_action
        for slot in range(1, self.slots):
            if self.players[slot] is not None:
                actions[slot] = self.select_action(slot)
        rewards, terminated, truncated = self.act(actions)
        self.open_process()
        if terminated or truncated:
            self.reset()
        return rewards[0], terminated, truncated
