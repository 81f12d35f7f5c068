"""FortAttack, one environment, in plain Python with float64 numbers.

The tests compare the fast implementation with this one, step by step. It is written from the rules
of the game alone and shares no code with what it checks. `step` is deterministic; only the fresh
places of `reset` and `open_process` are random, and `set_state` can replace them.
"""

from math import cos, floor, hypot, pi, sin

import numpy as np

NOTHING, RIGHT, LEFT, UP, DOWN, TURN_PLUS, TURN_MINUS, SHOOT = range(8)
THRUST = {RIGHT: (1, 0), LEFT: (-1, 0), UP: (0, 1), DOWN: (0, -1)}
TURN = {TURN_PLUS: 0.17, TURN_MINUS: -0.17}

AGENT_RADIUS = 0.05
SECONDS = 0.1  # length of a step
KEPT_SPEED = 0.75  # the rest is lost to damping
ACCELERATION = 3.0
MAX_SPEED = 3.0
CONTACT_FORCE = 100.0
LASER_LENGTH = 0.8  # from the apex to each far corner
LASER_HALF_ANGLE = pi / 8
LONGEST_WAIT = 80
REACH = 0.95  # the wait is 0 from this distance on

FORT_REWARD, HIT_REWARD, SHOT_COST = 10.0, 3.0, 0.1

# Half of the width and of the height of the field, the radius of the fort, the steps of an episode,
# and the least |y| of a fresh place. The centre of the fort is the middle of the upper wall.
RULES = {
    "paper": (0.8, 1.0, 0.3, 200, 0.8),
    "reference": (1.0, 0.8, 0.15, 100, 0.64),
}


def triangle(x, y, heading):
    """The corners of the laser of an agent: the apex, then the two far corners."""
    x, y = x + AGENT_RADIUS * cos(heading), y + AGENT_RADIUS * sin(heading)
    corners = [(x, y)]
    for angle in (heading + LASER_HALF_ANGLE, heading - LASER_HALF_ANGLE):
        corners.append((x + LASER_LENGTH * cos(angle), y + LASER_LENGTH * sin(angle)))
    return corners


def barycentric(point, corners):
    """The three barycentric coordinates of a point in a triangle."""
    (x1, y1), (x2, y2), (x3, y3) = corners
    x, y = point
    area = (y2 - y3) * (x1 - x3) + (x3 - x2) * (y1 - y3)
    first = ((y2 - y3) * (x - x3) + (x3 - x2) * (y - y3)) / area
    second = ((y3 - y1) * (x - x3) + (x1 - x3) * (y - y3)) / area
    return first, second, 1.0 - first - second


def waiting_time(rules, distances):
    """Steps that an agent stays away, from its distances to all who hit it.

    Paper: only the nearest one counts. Reference: all of them add up.
    """
    if rules == "paper":
        return max(0, round(LONGEST_WAIT * (1 - min(distances) / REACH)))
    return floor(LONGEST_WAIT * sum(max(0.0, 1 - distance / REACH) for distance in distances))


def push(x, y, other_x, other_y):
    """The force on an agent from another one; none if both are at the same point."""
    distance = hypot(x - other_x, y - other_y)
    overlap = 2 * AGENT_RADIUS - distance
    if distance == 0 or overlap <= 0:
        return 0.0, 0.0
    force = CONTACT_FORCE * overlap
    return force * (x - other_x) / distance, force * (y - other_y) / distance


def wall_push(position, limit):
    """The force along one axis from the walls at -limit and +limit."""
    above = max(0.0, position + AGENT_RADIUS - limit)
    below = max(0.0, -limit - (position - AGENT_RADIUS))
    return CONTACT_FORCE * (below - above)


def wrapped(angle):
    """The same angle in [0, 2 pi)."""
    angle %= 2 * pi
    return 0.0 if angle >= 2 * pi else angle  # a tiny negative angle is rounded up to 2 pi


class SlowFortAttack:
    """One game. Guards have the first slots, attackers the others; slot 0 is the learner.

    x, y, vx, vy, heading: per slot; all 0 while the agent is away
    present: per slot whether the agent is there
    wait: per slot the steps left until the agent is back, 0 if it is there
    time: steps taken in this episode
    fired: per slot whether the agent shot in the last step
    hits: pairs (shooter, victim) of the last step
    fallen: whether the fort fell in the last step
    """

    def __init__(self, rules, guards=3, attackers=3, seed=0):
        if rules not in RULES:
            raise ValueError(f"rules must be 'paper' or 'reference', not {rules!r}")
        self.rules = rules
        self.guards = guards
        self.attackers = attackers
        self.slots = guards + attackers
        self.width, self.height, self.fort_radius, self.horizon, self.start = RULES[rules]
        self.rng = np.random.default_rng(seed)
        self.reset()

    def reset(self):
        """A new episode: everybody is there, at a fresh place."""
        self.x, self.y, self.vx, self.vy, self.heading = np.zeros((5, self.slots))
        self.present = np.ones(self.slots, dtype=bool)
        self.wait = np.zeros(self.slots, dtype=int)
        self.time = 0
        self._forget_step()
        for slot in range(self.slots):
            self.place(slot)

    def set_state(self, x, y, vx, vy, heading, present, time):
        """Copy in a state. Those away keep their wait, which may be set by hand."""
        self.x, self.y = np.array(x, dtype=float), np.array(y, dtype=float)
        self.vx, self.vy = np.array(vx, dtype=float), np.array(vy, dtype=float)
        self.heading = np.array(heading, dtype=float)
        self.present = np.array(present, dtype=bool)
        self.wait = np.where(self.present, 0, self.wait)
        self.time = int(time)

    def _forget_step(self):
        """Nothing happened yet."""
        self.fired = np.zeros(self.slots, dtype=bool)
        self.hits = set()
        self.fallen = False
        self._just_shot = set()

    def is_guard(self, slot):
        """Whether a slot belongs to the guards."""
        return slot < self.guards

    def _here(self):
        """The slots of those who are there."""
        return [slot for slot in range(self.slots) if self.present[slot]]

    def _distance(self, a, b):
        """Between the centres of two agents."""
        return hypot(self.x[a] - self.x[b], self.y[a] - self.y[b])

    def place(self, slot):
        """A fresh place, at rest, with the initial heading; others may be in the way."""
        guard = self.is_guard(slot)
        half_width = 0.4 * self.fort_radius if guard else self.width
        self.x[slot] = self.rng.uniform(-half_width, half_width)
        height = self.rng.uniform(self.start, self.height)
        self.y[slot] = height if guard else -height
        self.vx[slot] = self.vy[slot] = 0.0
        self.heading[slot] = 3 * pi / 2 if guard else pi / 2

    def in_triangle(self, shooter, target):
        """Whether the centre of the target is in the laser of the shooter, of whatever team."""
        corners = triangle(self.x[shooter], self.y[shooter], self.heading[shooter])
        return bool(min(barycentric((self.x[target], self.y[target]), corners)) >= 0)

    def step(self, actions):
        """Shots, deaths, movement; the rewards of all slots and whether the episode is over."""
        self._forget_step()
        started = self._here()
        actions = [int(action) for action in actions]
        if not all(NOTHING <= actions[slot] <= SHOOT for slot in started):
            raise ValueError(f"actions are numbers from 0 to 7, not {actions}")

        self._shoot(actions)
        self._remove_shot()
        self._move(actions)
        self.fallen = any(self._in_fort(slot) for slot in self._here())
        self.time += 1
        last = self.time >= self.horizon

        rewards = np.zeros(self.slots)
        for slot in started:
            rewards[slot] = self._reward(slot, last)
        return rewards, self.fallen or last or 0 in self._just_shot

    def _shoot(self, actions):
        """Each shot hits all opponents in its triangle; nobody is removed yet."""
        for shooter in self._here():
            if actions[shooter] != SHOOT:
                continue
            self.fired[shooter] = True
            for target in self._here():
                opponents = self.is_guard(shooter) != self.is_guard(target)
                if opponents and self.in_triangle(shooter, target):
                    self.hits.add((shooter, target))

    def _remove_shot(self):
        """All who were hit vanish and start to wait."""
        self._just_shot = {victim for _, victim in self.hits}
        for slot in self._just_shot:
            distances = [
                self._distance(a, slot) for a, victim in sorted(self.hits) if victim == slot
            ]
            self.wait[slot] = waiting_time(self.rules, distances)
        for slot in self._just_shot:
            self.present[slot] = False
            self.x[slot] = self.y[slot] = self.vx[slot] = self.vy[slot] = 0.0
            self.heading[slot] = 0.0

    def _force(self, slot, action):
        """Thrust, pushes of those who are there, and the walls."""
        right, up = THRUST.get(action, (0, 0))
        force_x = ACCELERATION * right + wall_push(self.x[slot], self.width)
        force_y = ACCELERATION * up + wall_push(self.y[slot], self.height)
        for other in self._here():
            if other != slot:
                by_x, by_y = push(self.x[slot], self.y[slot], self.x[other], self.y[other])
                force_x += by_x
                force_y += by_y
        return force_x, force_y

    def _move(self, actions):
        """All who are left move and turn at once; the forces are those before anybody moved."""
        forces = {slot: self._force(slot, actions[slot]) for slot in self._here()}
        for slot, (force_x, force_y) in forces.items():
            vx = KEPT_SPEED * self.vx[slot] + SECONDS * force_x
            vy = KEPT_SPEED * self.vy[slot] + SECONDS * force_y
            speed = hypot(vx, vy)
            if speed > MAX_SPEED:
                vx, vy = vx / speed * MAX_SPEED, vy / speed * MAX_SPEED
            self.vx[slot], self.vy[slot] = vx, vy
            self.x[slot] += SECONDS * vx
            self.y[slot] += SECONDS * vy
            if actions[slot] in TURN:
                self.heading[slot] = wrapped(self.heading[slot] + TURN[actions[slot]])

    def _in_fort(self, slot):
        """Whether an agent is an attacker whose centre is in the fort."""
        distance = hypot(self.x[slot], self.y[slot] - self.height)
        return not self.is_guard(slot) and distance < self.fort_radius

    def _reward(self, slot, last):
        """The reward of an agent who was there at the start of the step."""
        for_guards = FORT_REWARD * (last - self.fallen)
        reward = for_guards if self.is_guard(slot) else -for_guards
        if slot in self._just_shot:
            reward -= HIT_REWARD
        if any(shooter == slot for shooter, _ in self.hits):
            reward += HIT_REWARD
        if self.fired[slot]:
            reward -= SHOT_COST
        return reward

    def open_process(self):
        """After a step: those away wait, and come back when due; returns the slots that entered.

        The step in which an agent was shot does not count. With a wait of 0 it is back at once.
        """
        entered = []
        for slot in range(self.slots):
            if self.present[slot]:
                continue
            if slot not in self._just_shot:
                self.wait[slot] -= 1
            if self.wait[slot] <= 0:
                self.wait[slot] = 0
                self.present[slot] = True
                self.place(slot)
                entered.append(slot)
        self._just_shot = set()
        return entered

    def observe(self):
        """The features of each slot, all -1 for those away."""
        rows = []
        for slot in range(self.slots):
            angle = self.heading[slot]
            heading = [cos(angle), sin(angle)] if self.rules == "paper" else [angle]
            team = [1.0, 0.0] if self.is_guard(slot) else [0.0, 1.0]
            place, speed = [self.x[slot], self.y[slot]], [self.vx[slot], self.vy[slot]]
            row = place + heading + speed + team
            rows.append(row if self.present[slot] else [-1.0] * len(row))
        return np.array(rows)
