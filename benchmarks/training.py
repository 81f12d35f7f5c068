"""How fast a learner trains, at the paper's setting: 16 environments, limit 3.

Share of peak: useful floating-point work a second over the matmul peak of the same core, measured
in turns. Useful work of an environment step, counted from the shapes: a forward pass of value and
agent part, one of the target, and a backward pass of twice the forward. In joint training it is a
forward pass of all who are under control, and the step's part of an update: what its batch takes
of forward passes, and backward passes of twice that. Every process is pinned to a core and has one
thread. Absolute times are not stable on a shared machine; read the ratios.

    python benchmarks/training.py [--game lbf] [--learner gpl-q] [--rules reference] [--rounds 7]
                                  [--seconds 2] [--beside ciao-c ciao-s] [--teams 3 40]

With --beside, all that is measured is the speed of those learners over that of the learner, in
teams of some sizes; without it, everything about the learner.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

from workers import Worker, memory_mib, spread

PARTS = {
    "game": "game (prey too), openness, new episodes",
    "environment": "teammates",
    "acting": "forward and choice",
    "targets": "target",
    "gradient": "backward",
    "update": "optimiser, target's weights, metrics",
}
JOINT_PARTS = {
    "game": "game (prey too), openness, new episodes",
    "acting": "forward and choice",
    "replay": "writing and drawing",
    "update": "learning",
}
TEAMS = (3, 5, 10, 20, 40)
GRID = 20  # For the large teams, which need room.
SMALL_TEAM = 5  # Up to this size they have room on the paper's grid.


def useful_flops(slots: int, interface: Any, config: Any, steps: int) -> float:
    """Return the useful work of one environment step: matrix products, counted from the shapes.

    `steps` is the number of environment steps per update.
    """
    from dropin.learners.base import num_features

    features, actions = num_features(interface), len(interface.actions)
    size, hidden = config.type_vector_size, config.message_hidden_size
    embedding = config.embedding_size

    def types(rows: int, inputs: int) -> int:
        units, memory = config.type_hidden_size, config.type_lstm_size
        middle = (units + memory) * 4 * memory if config.is_recurrent else units * memory
        return rows * (inputs * units + units**2 + middle + memory * size)

    agent = types(slots, features) + slots * (
        2 * size * hidden
        + hidden * embedding
        + (size + embedding) * hidden
        + hidden * embedding
        + embedding * config.readout_hidden_size
        + config.readout_hidden_size * actions
    )
    name = type(config).__name__
    if name in ("GPLConfig", "CIAOConfig"):
        value = types(slots, features) + _graph(slots, actions, config)
    elif name in ("QLConfig", "MADDPGConfig"):
        from dropin.learners.positions import flat_input_size

        flat = flat_input_size(interface, config.max_agents_per_side, config.agent_model) + len(
            interface.shared_features
        )
        one, two = config.first_hidden_size, config.second_hidden_size
        layers = size * one + one * two
        value = types(1, flat) + layers + two * actions
        if name == "MADDPGConfig":
            critic = types(1, flat + config.max_agents_per_side * actions) + layers + two
            # Forward: both actors, the critic of what was done, of what follows and of what the
            # actor does. Backward: the actor, the critic twice, the second time for its input.
            drawn = 2 * value + 3 * critic + 2 * value + 2 * critic + critic
            return 2 * slots * (value + config.batch_size / steps * drawn)
    else:
        one, two, all_heads = (
            config.first_hidden_size,
            config.second_hidden_size,
            config.num_heads * config.second_hidden_size,
        )
        active = two * one + one * all_heads
        askers = slots if name == "DGNConfig" else 1
        value = types(slots, features + config.agent_model * actions)
        value += slots * (size * one + one * two) + (2 * slots + askers) * active
        value += askers * (2 * slots * all_heads + (two + all_heads) * actions)
        if name == "DGNConfig":
            # Forward: now, what follows by both copies. Backward: now.
            return 2 * (value + config.batch_size / steps * 5 * value)
    if not getattr(config, "agent_model", True):
        agent = 0
    return 2 * (3 * (value + agent) + value)


def _graph(slots: int, actions: int, gpl: Any) -> int:
    """GPL's utilities."""
    size, units = gpl.type_vector_size, gpl.utility_hidden_size
    alone = (slots + 1) * size * units + slots * units * (units + actions)
    rest = units * (units + actions * gpl.rank)
    if gpl.pair_input == "pair":
        is_star = getattr(gpl, "graph", "complete") == "star"
        ordered_pairs = (2 if is_star else slots) * (slots - 1)
        return alone + (2 * slots + 1) * size * units + ordered_pairs * rest
    return alone + (slots + 1) * size * units + slots * rest


def serve(game: str, name: str, rules: str, slots: int, pair_input: str, part: str) -> None:
    """Measure in a worker: for every line "SECONDS" on standard input, print the speed."""
    import jax
    import jax.numpy as jnp

    import dropin
    from dropin._xla.cache import use_cache
    from dropin.core import registry
    from dropin.learners.config import TrainConfig
    from dropin.training.chunk import RunState

    use_cache()
    changes: dict[str, Any] = {"size": GRID} if part == "grid" else {}
    env = dropin.make(game, rules=rules, team_limit=slots, **changes)
    spec, training = registry.learners[name], TrainConfig()
    given = {} if pair_input == "pair" else {"pair_input": pair_input}
    settings = spec.default_settings(game, **given)
    learner = spec.make(settings, training)

    matrix, multiply = jnp.ones((512, 512)), jax.jit(lambda a: a @ a / 512)

    def peak() -> float:
        best = float("inf")
        for _ in range(5):
            start = time.perf_counter()
            jax.block_until_ready([multiply(matrix) for _ in range(10)])
            best = min(best, (time.perf_counter() - start) / 10)
        return 2 * 512**3 / best

    peak()
    before = time.perf_counter()
    state: Any = RunState(learner.init(jax.random.key(0), env), jnp.int32(0))
    jax.block_until_ready(state.updates)
    ready = time.perf_counter() - before
    run = _part(learner, env, "update" if part == "grid" else part)
    before = time.perf_counter()
    state = jax.block_until_ready(run(state, 1))
    compiled = time.perf_counter() - before
    print(f"{ready:.1f} {compiled:.1f}", flush=True)
    number = 1
    flops = useful_flops(env.slots, env.interface, settings, training.steps_per_update)
    for line in sys.stdin:
        top = peak()
        steps, before, used = 0, time.perf_counter(), time.process_time()
        while time.perf_counter() - before < float(line):
            start = time.perf_counter()
            state = jax.block_until_ready(run(state, number))
            steps += number * training.steps_per_update
            if time.perf_counter() - start < float(line) / 4:
                number *= 2
        rate = steps / (time.perf_counter() - before)
        own_rate = steps / (time.process_time() - used)
        share, (held, most) = rate * flops / max(top, peak()), memory_mib()
        print(f"{rate:.3f} {share:.5f} {held:.0f} {most:.0f} {flops} {own_rate:.3f}", flush=True)


def _part(  # noqa: PLR0915
    learner: Any, env: Any, part: str
) -> Callable[[Any, int], Any]:
    """Return a function that does many updates, or only the first parts of them."""
    import equinox as eqx
    import jax
    import jax.numpy as jnp

    from dropin._xla.compile import compiled
    from dropin.training.chunk import train_chunk

    if part == "update":

        def whole(state: Any, number: int) -> Any:
            return train_chunk((env, learner, jnp.int32(number)), state)[0]

        return whole

    num_envs, length = learner.training.num_envs, learner.training.rollout_length

    def play(state: Any, everybody: bool) -> Any:
        """Take random actions: of everybody, or of the learner with its teammates acting."""
        key, acting, stepping = jax.random.split(state.key, 3)
        actions = jax.random.randint(
            acting, (length, num_envs, env.slots), 0, len(env.game.actions)
        )
        keys = jax.random.split(stepping, (length, num_envs))

        def step(states: Any, given: Any) -> Any:
            if everybody:
                states, result = jax.vmap(env.step_all)(given[0], states, given[1])
            else:
                states, result = jax.vmap(env.step)(given[0], states, given[1][:, 0])
            return states, (result.observation, result.reward)

        states, (observation, reward) = jax.lax.scan(step, state.env, (keys, actions))
        last = jax.tree.map(lambda leaf: leaf[-1], observation)
        return eqx.tree_at(
            lambda s: (s.env, s.observation, s.running.returns, s.key),
            state,
            (states, last, reward.sum(0), key),
        )

    def carried_on(state: Any, carry: Any, extra: Any) -> Any:
        states, observation, memory = carry
        return eqx.tree_at(
            lambda s: (s.env, s.observation, s.memory, s.running.returns, s.updates, s.key),
            state,
            (states, observation, memory, state.running.returns + extra, state.updates + 1,
             jax.random.split(state.key, 3)[0]),
        )  # fmt: skip

    def act_jointly(state: Any, store: bool) -> Any:
        key, playing, drawing = jax.random.split(state.key, 3)
        carry, stored, steps = learner.collect_rollout(env, state, playing)
        extra = steps.reward.sum(0)
        if store:
            from dropin.learners.replay_based import sample_transitions

            replay = state.replay.add(stored)
            batch = sample_transitions(replay, drawing, learner.config.batch_size)
            extra = extra + sum(jnp.sum(leaf) * 0.0 for leaf in jax.tree.leaves(batch))
            state = eqx.tree_at(lambda s: s.replay, state, replay)
        return carried_on(eqx.tree_at(lambda s: s.key, state, key), carry, extra)

    def used(tree: Any) -> Any:
        """Return a zero that depends on a little of every array, so that all are computed."""
        leaves = [leaf for leaf in jax.tree.leaves(tree) if leaf.dtype == jnp.float32 and leaf.size]
        return sum(leaf.ravel()[0] * 0 for leaf in leaves)

    def act(state: Any) -> Any:
        rollout, carry = learner.collect_rollout(env, state, jax.random.split(state.key, 3)[1])
        return carried_on(state, carry, rollout.steps.reward.sum(0) + used(rollout))

    def aim(state: Any) -> Any:
        _, one, two = jax.random.split(state.key, 3)
        rollout, carry = learner.collect_rollout(env, state, one)
        targets, memory = learner.td_targets(state, rollout, two)
        state = eqx.tree_at(lambda s: s.target_memory, state, memory)
        return carried_on(state, carry, used((rollout, targets)))

    def differentiate(state: Any) -> Any:
        _, one, two = jax.random.split(state.key, 3)
        rollout, carry = learner.collect_rollout(env, state, one)
        targets, memory = learner.td_targets(state, rollout, two)
        gradient, _ = eqx.filter_grad(learner.loss, has_aux=True)(state.network, rollout, targets)
        # A use of all of the gradient that costs little.
        network = jax.tree.map(lambda w, g: w + 1e-12 * g, state.network, gradient)
        state = eqx.tree_at(lambda s: (s.network, s.target_memory), state, (network, memory))
        return carried_on(state, carry, rollout.steps.reward.sum(0))

    jointly = not hasattr(learner, "td_targets")
    bodies = {
        "game": lambda state: play(state, True),
        "environment": lambda state: play(state, False),
        "acting": (lambda state: act_jointly(state, False)) if jointly else act,
        "replay": lambda state: act_jointly(state, True),
        "targets": aim,
        "gradient": differentiate,
    }

    def several(state: Any, number: Any) -> Any:
        arrays, static = eqx.partition(state.train_state, eqx.is_array)

        def body(_: Any, arrays: Any) -> Any:
            return eqx.filter(bodies[part](eqx.combine(arrays, static)), eqx.is_array)

        after = eqx.combine(jax.lax.fori_loop(0, number, body, arrays), static)
        return eqx.tree_at(lambda s: s.train_state, state, after)

    run = compiled(several, donate="all")
    return lambda state, number: run(state, jnp.int32(number))


What = tuple[str, str, str]
"""Game, learner, rules."""


def start(
    what: What, slots: int = 3, pair: str = "pair", part: str = "update",
    core: int = 0, cache: str = "off",
) -> Worker:  # fmt: skip
    """Start `serve` on one core.

    It says how long the first state and the compilation took, and measures steps a second, share of
    peak, memory in MiB, now and at most, useful work of a step, and
    steps a second of processor time.
    """
    return Worker(__file__, [*what, str(slots), pair, part], [core], {"DROPIN_CACHE": cache})


def end_to_end(what: What, rounds: int, seconds: float) -> None:
    """Share of peak, two processes, compile time and memory."""
    with tempfile.TemporaryDirectory() as cache:
        first = start(what, core=0, cache=cache)
        second = start(what, core=1, cache=cache)
        rates, shares, gains = [], [], []
        held = most = flops = 0.0
        for _ in range(rounds):
            rate, share, held, most, flops, _ = first.measure(seconds)
            rates.append(rate)
            shares.append(100 * share)
            first.ask(seconds)
            second.ask(seconds)
            both = first.hear()[0] + second.hear()[0]
            gains.append(both / (first.measure(seconds)[0] + rate) * 2)
        print(f"useful work of a step            {flops / 1e6:.2f} MFLOP")
        print(f"share of peak, %                 {spread(shares, '{:.1f}')}")
        print(f"steps a second, one process      {spread(rates, '{:.0f}')}")
        print(f"two processes over one           {spread(gains)}")
        print(f"memory while it trains, MiB      {held:.0f}, at most {most:.0f} while it compiles")
        names = ("first state, s", "compilation of the chunk, s")
        for name, cold, warm in zip(names, first.ready, second.ready, strict=True):
            print(f"{name:<32} {cold:.1f} cold, {warm:.1f} from the cache")
        first.close()
        second.close()


def split(what: What, rounds: int, seconds: float) -> None:
    """Where the time of an update goes, from programs that do its first parts only."""
    from dropin.core import registry

    jointly = "partners" in registry.learners[what[1]].evaluate_with
    parts = JOINT_PARTS if jointly else PARTS
    workers = {part: start(what, part=part) for part in parts}
    shares: dict[str, list[float]] = {part: [] for part in parts}
    for _ in range(rounds):
        times = {part: 1 / worker.measure(seconds)[0] for part, worker in workers.items()}
        before = 0.0
        for part in parts:
            shares[part].append(100 * (times[part] - before) / times["update"])
            before = times[part]
    for worker in workers.values():
        worker.close()
    for part, name in parts.items():
        print(f"{name:<40} {spread(shares[part], '{:.1f}')} %")


def growth(what: What, rounds: int, seconds: float) -> None:
    """How the time of a step grows with the team."""
    for pair in ("pair", "agent"):
        workers = {n: start(what, n, pair, "grid") for n in TEAMS}
        ratios: dict[int, list[float]] = {n: [] for n in TEAMS}
        shares: dict[int, list[float]] = {n: [] for n in TEAMS}
        for _ in range(rounds):
            found = {n: worker.measure(seconds) for n, worker in workers.items()}
            for n in TEAMS:
                ratios[n].append(found[TEAMS[0]][0] / found[n][0])
                shares[n].append(100 * found[n][1])
        for worker in workers.values():
            worker.close()
        for n in TEAMS:
            pairs, agents = n * (n - 1) / 6, n / 3
            print(
                f"{pair:<6} {n:>3} agents: time x {spread(ratios[n]):<24} agents x {agents:<6.2f}"
                f" pairs x {pairs:<7.2f} share of peak {statistics.median(shares[n]):.1f} %"
            )


def beside(what: What, others: list[str], teams: list[int], rounds: int, seconds: float) -> None:
    """Print the speed of other learners over that of a learner, measured in turns on one core.

    It is that of the processor time, so that other programs on the core disturb it little.
    """
    game, learner, rules = what
    for slots in teams:
        part = "update" if slots <= SMALL_TEAM else "grid"
        where = "paper's setting" if part == "update" else f"grid of {GRID} x {GRID}"
        workers = {name: start((game, name, rules), slots, part=part)
                   for name in (learner, *others)}  # fmt: skip
        ratios: dict[str, list[float]] = {name: [] for name in others}
        own = []
        for _ in range(rounds):
            found = {name: worker.measure(seconds)[-1] for name, worker in workers.items()}
            own.append(found[learner])
            for name in others:
                ratios[name].append(found[name] / found[learner])
        for worker in workers.values():
            worker.close()
        print(
            f"{where}, {slots} agents: {learner} {spread(own, '{:.0f}')} steps a second", flush=True
        )
        for name in others:
            print(f"  {name:<8} x {spread(ratios[name])}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--beside", nargs="+", default=[], help="learners to compare with")
    parser.add_argument("--teams", nargs="+", type=int, default=[3, 40], help="with --beside")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--game", default="lbf")
    parser.add_argument("--learner", default="gpl-q")
    parser.add_argument("--rules", default="reference")
    parser.add_argument("--no-growth", action="store_true", help="leave out larger teams")
    parser.add_argument("--serve", nargs=6, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        game, learner, rules, slots, pair, part = options.serve
        serve(game, learner, rules, int(slots), pair, part)
        return
    import jax

    print(f"{options.learner} in {options.game}, rules {options.rules}, 16 environments;")
    print(
        f"medians (least to greatest) of {options.rounds} rounds of {options.seconds:g} s,", end=""
    )
    print(f" jax {jax.__version__}\n")
    what = (options.game, options.learner, options.rules)
    if options.beside:
        beside(what, options.beside, options.teams, options.rounds, options.seconds)
        return
    for title, measure in (("End to end", end_to_end), ("Where the time goes", split)):
        print(title)
        measure(what, options.rounds, options.seconds)
        print(flush=True)
    if options.no_growth or not options.learner.startswith("gpl"):
        return
    print(f"Teams of any size, on a grid of {GRID} x {GRID}; time of a step relative to 3 agents")
    growth(what, max(options.rounds // 2, 1), options.seconds)


if __name__ == "__main__":
    main()
