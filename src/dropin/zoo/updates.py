"""What the algorithms of the zoo share: train state, settings, optimiser, chunks of updates."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import equinox as eqx
import jax
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from dropin._xla.compile import compiled
from dropin.core.metrics import Mean, accumulate, zeros_like

__all__ = ["ActorCriticConfig", "TrainState", "cosine_adam", "run_updates"]

State = TypeVar("State")
Params = TypeVar("Params")
EnvStates = TypeVar("EnvStates")


@dataclass(frozen=True)
class ActorCriticConfig:
    """The settings that all actor-critic algorithms have."""

    learning_rate: float = 1e-3
    """Of Adam, at the start."""
    final_learning_rate: float = 1e-4
    """Of Adam, at the end."""
    discount: float = 0.99
    """gamma."""
    entropy_coef: float = 0.01
    """Weight of the entropy bonus in the loss."""


class TrainState(eqx.Module, Generic[Params, EnvStates]):
    """Everything that changes from one update to the next."""

    params: Params
    opt_state: PyTree
    env_state: EnvStates
    """The states of the environments, with a leading env axis."""
    steps: Int[Array, ""]
    """Environment steps so far, all environments together."""
    key: PRNGKeyArray


def cosine_adam(
    learning_rate: float,
    final_learning_rate: float,
    num_updates: int,
    max_grad_norm: float | None = None,
) -> optax.GradientTransformation:
    """Return Adam over all weights in one array, with a learning rate that decays along a cosine.

    Args:
        learning_rate: The learning rate of the first update.
        final_learning_rate: The learning rate from the last update on.
        num_updates: Number of updates over which it decays.
        max_grad_norm: Largest global norm of the gradients; longer ones are scaled down to it.
            None: no limit.
    """
    schedule = optax.cosine_decay_schedule(
        learning_rate, num_updates, final_learning_rate / learning_rate
    )
    adam = optax.adam(schedule)
    if max_grad_norm is None:
        return optax.flatten(adam)
    return optax.flatten(optax.chain(optax.clip_by_global_norm(max_grad_norm), adam))


def _run_updates(
    update: Callable[..., tuple[State, dict[str, Mean]]],
    num_updates: int,
    state: State,
    *inputs: PyTree,
) -> tuple[State, dict[str, Float[Array, ""]]]:
    """Run several updates in one compiled call.

    Args:
        update: A function `(*inputs, state) -> (state, metrics)`, in which each metric is a single
            value (`Mean.of`). It has to be hashable, so that the next chunk does not compile it
            again.
        num_updates: How many updates to run.
        state: The train state.
        *inputs: What the update needs besides, such as its settings and the environment.

    Returns:
        The train state after the updates, and the mean of each metric over them.
    """
    arrays, static = eqx.partition(state, eqx.is_array)

    def body(_: Int[Array, ""], carry: tuple[PyTree, PyTree]) -> tuple[PyTree, PyTree]:
        arrays, totals = carry
        after, metrics = update(*inputs, eqx.combine(arrays, static))
        return eqx.filter(after, eqx.is_array), accumulate(totals, metrics)

    _, metrics = eqx.filter_eval_shape(update, *inputs, state)
    arrays, totals = jax.lax.fori_loop(0, num_updates, body, (arrays, zeros_like(metrics)))
    means = {name: mean.total / num_updates for name, mean in totals.items()}
    return eqx.combine(arrays, static), means


run_updates = compiled(_run_updates)
