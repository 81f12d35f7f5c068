"""Prey that learned to flee.

Each sees a patch of the grid ahead of it: its own row of cells and the eight before it, eight cells
to either side, as in the authors' program. (The paper's main text says that prey see a limited
patch ahead of them; the 17x25 cells around it of the appendix would be nearly all of the grid.)
What differs from the authors' prey: a small network without memory in place of a convolutional one
with five frames.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from dropin.dice import Dice
from dropin.games.wolfpack.game import PREY_ACTIONS, State
from dropin.models.layers import MLP
from dropin.teams.learned import learned

DEEP, SIDE = 9, 8
WIDE = 2 * SIDE + 1
CELLS = DEEP * WIDE
SEEN = 3 * CELLS
"""Whether there is a hunter, a prey, or the outside of the grid, for each cell of the patch."""
HIDDEN = 64
STUMBLES = 0.1
"""How often the prey of the zoo do anything. The authors' program asks for the same share, to no
effect there; without it our prey hardly ever get caught."""
NETWORKS = 2
"""One network for each of two prey."""


def relative(
    facing: Int[Array, " prey"], gap: Int[Array, "prey n 2"]
) -> tuple[Int[Array, "prey n"], Int[Array, "prey n"]]:
    """How far ahead and to the right something is that lies so far (down, right)."""
    down, right = gap[..., 0], gap[..., 1]
    way = facing[:, None]
    ahead = jnp.where(way % 2 == 0, -down, right)
    aside = jnp.where(way % 2 == 0, right, down)
    back = way >= 2
    return jnp.where(back, -ahead, ahead), jnp.where(back, -aside, aside)


def patches(size: int, state: State) -> Float[Array, "prey seen"]:
    """What each prey sees. Captured prey are not seen, not even by themselves."""
    hunters = _marks(state, state.hunters, state.present)
    prey = _marks(state, state.prey, ~state.captured)
    return jnp.concatenate([hunters, prey, _outside(size, state)], axis=1).astype(jnp.float32)


def _marks(
    state: State, things: Int[Array, "n 2"], there: Bool[Array, " n"]
) -> Bool[Array, "prey cell"]:
    """Which cells of the patches hold one of the things."""
    place = _places(state, things, there)
    return jnp.any(place[:, :, None] == jnp.arange(CELLS)[None, None], axis=1)


def _places(
    state: State, things: Int[Array, "n 2"], there: Bool[Array, " n"]
) -> Int[Array, "prey n"]:
    """The cell of each patch that holds each thing, or one more than there are."""
    ahead, aside = relative(state.facing, things[None] - state.prey[:, None])
    inside = (ahead >= 0) & (ahead < DEEP) & (jnp.abs(aside) <= SIDE) & there[None]
    return jnp.where(inside, ahead * WIDE + aside + SIDE, CELLS)


def _outside(size: int, state: State) -> Bool[Array, "prey cell"]:
    """Which cells of the patches are not on the grid."""
    ahead, aside = np.divmod(np.arange(CELLS), WIDE)
    steps = jnp.asarray(np.stack([-ahead, aside - SIDE], axis=1))[None]
    # Turning the patch is turning by the opposite of what brings things into it.
    down, right = steps[..., 0], steps[..., 1]
    way = state.facing[:, None]
    row = jnp.where(way % 2 == 0, down, right)
    column = jnp.where(way % 2 == 0, right, -down)
    turned = jnp.where(way >= 2, -1, 1)
    row = state.prey[:, :1] + turned * row
    column = state.prey[:, 1:] + turned * column
    return (row < 0) | (row >= size) | (column < 0) | (column >= size)


def networks(key: PRNGKeyArray) -> MLP:
    """Fresh networks for two prey, side by side in every array: action values from a patch."""
    build = eqx.filter_vmap(lambda key: MLP([SEEN, HIDDEN, HIDDEN, PREY_ACTIONS], key=key))
    return build(jax.random.split(key, NETWORKS))


def action_values(nets: MLP, seen: Float[Array, "prey seen"]) -> Float[Array, "prey action"]:
    """Of each prey by its own network; more than two prey take turns."""
    return eqx.filter_vmap(lambda net, each: net(each))(_turns(nets, len(seen)), seen)


def _turns(nets: MLP, prey: int) -> MLP:
    """A network for each prey."""
    which = np.arange(prey) % NETWORKS
    return nets if prey == NETWORKS else jax.tree.map(lambda leaf: leaf[which], nets)


def quick_values(nets: MLP, size: int, state: State) -> Float[Array, "prey action"]:
    """The action values for what each prey sees, without a picture of it.

    Few cells of a patch hold anything, and those on the grid form a rectangle: the first layer is
    a sum of a few rows of its weights, and of differences of their running sums.
    """
    mine = _turns(nets, len(state.prey))
    hunters = _places(state, state.hunters, state.present)
    prey = _places(state, state.prey, ~state.captured)
    # From a prey to the edges of the grid: ahead, and to either side.
    last = size - 1 - state.prey
    edges = jnp.stack([state.prey[:, 0], last[:, 1], last[:, 0], state.prey[:, 1]], axis=1)
    way = (state.facing[:, None] + np.array([0, 1, 3])[None]) % 4
    room = jnp.take_along_axis(edges, way, axis=1)

    def values(net: MLP, hunters: Array, prey: Array, room: Array) -> Array:
        first = net.layers[0]
        parts = first.weight.reshape(3, CELLS, HIDDEN)
        total = first.bias
        for rows, places in zip(parts, (hunters, prey), strict=False):
            or_nothing = jnp.pad(rows, ((0, 1), (0, 0)))
            for place in places:
                total = total + or_nothing.at[place].get(mode="promise_in_bounds")
        return net.after_first(total + _outside_sum(parts[2], room))

    return eqx.filter_vmap(values)(mine, hunters, prey, room)


def _outside_sum(
    rows: Float[Array, "cell hidden"], room: Int[Array, " 3"]
) -> Float[Array, " hidden"]:
    """The sum of the rows of the cells off the grid, with so much room ahead, right and left."""
    down, along = np.tri(DEEP, dtype=np.float32), np.tri(WIDE + 1, WIDE, -1, dtype=np.float32)
    sums = jnp.einsum("dr,wc,rch->dwh", down, along, rows.reshape(DEEP, WIDE, HIDDEN))
    deep = jnp.minimum(room[0], DEEP - 1)
    right = SIDE + 1 + jnp.minimum(room[1], SIDE)
    left = SIDE - jnp.minimum(room[2], SIDE)
    return sums[-1, -1] - (sums[deep, right] - sums[deep, left])


class Fleeing(eqx.Module):
    """Prey that do what they value most, but now and then stumble: then they do anything."""

    nets: MLP
    stumbles: Float[Array, ""] = eqx.field(
        converter=lambda value: jnp.asarray(value, jnp.float32), default=0.0
    )
    """How likely that is."""

    def start(self, prey: int) -> tuple[()]:
        """Nothing to remember."""
        del prey
        return ()

    def act(self, dice: Dice, size: int, state: State) -> tuple[Int[Array, " prey"], tuple[()]]:
        """The action of the highest value, or any."""
        values = quick_values(self.nets, size, state)
        best = jnp.argmax(values, axis=1).astype(jnp.int32)
        count = len(best)
        anything = dice.integers(0, PREY_ACTIONS - 1, count)
        return jnp.where(dice.uniform(count) < self.stumbles, anything, best), ()


def _like() -> MLP:
    return networks(jax.random.key(0))


def fleeing() -> Fleeing:
    """The prey of the zoo."""
    return Fleeing(learned("wolfpack/prey", _like), STUMBLES)
