"""Several seeds trained as one program, against each seed alone."""

import json
import shutil
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tiny
from test_loop import CtrlC, cut_back, same

from dropin.core import registry
from dropin.core.arrays import to_arrays
from dropin.core.errors import InputError, StoppedError
from dropin.core.files import read_arrays, write_arrays
from dropin.core.locks import LOCK_FILE
from dropin.env import make
from dropin.training.chunk import RunState, blank_states, get_state, set_state, train_chunk
from dropin.training.config import TrainConfig, run_config
from dropin.training.loop import resume_run, resume_together, train_together
from dropin.training.reporters import Reporter
from dropin.training.run_directory import RunDirectory
from dropin.training.tables import read_table

SEEDS = (0, 3)


def run(directory, seeds=SEEDS, **changes):
    """Train in level-based foraging."""
    return train_together("lbf", "gpl-q", seeds, directory=directory, **(tiny.RUN | changes))


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Two seeds that were trained together."""
    directory = tmp_path_factory.mktemp("together") / "runs"
    run(directory)
    return directory


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The same seeds, each trained alone."""
    directory = tmp_path_factory.mktemp("alone")
    for seed in SEEDS:
        tiny.run(directory / f"seed-{seed}", seed=seed)
    return directory


@pytest.fixture
def copy(finished, tmp_path):
    """Copies of the finished runs that may be damaged."""
    return shutil.copytree(finished, tmp_path / "copy")


def runs_in(directory) -> list[Path]:
    return [directory / f"seed-{seed}" for seed in SEEDS]


def same_bits(one, two):
    """Whether all runs of two directories ended with the same bits."""
    for first, second in zip(runs_in(one), runs_in(two), strict=True):
        same(first, second)


def close(one, two):
    """Whether two runs are equal to rounding: what happened is equal, numbers are close."""
    for name in ("metrics.csv", "evaluation.csv"):
        first, second = read_table(one / name), read_table(two / name)
        assert [list(row) for row in first] == [list(row) for row in second]
        for row, other in zip(first, second, strict=True):
            for column, text in row.items():
                if column in ("step", "episodes", "return", "team_size", "mean_return", "mode"):
                    assert text == other[column], column
                elif column != "teammates" and text:
                    assert float(text) == pytest.approx(float(other[column]), rel=1e-4), column
    assert RunDirectory(one).steps() == RunDirectory(two).steps()
    last = RunDirectory(one).steps()[-1]
    (arrays, about), (others, other_about) = (
        read_arrays(RunDirectory(each).checkpoint(last)) for each in (one, two)
    )
    check_close(arrays, others)
    assert any("env.game" in name for name in arrays)
    assert about == other_about
    check_close(*(read_arrays(each / "agent.safetensors")[0] for each in (one, two)))


def check_close(arrays, others, *, exact_game=True):
    assert sorted(arrays) == sorted(others)
    for name, array in arrays.items():
        exact = exact_game and (".env." in name or ".observation." in name)
        if array.dtype.kind == "f" and not exact:
            np.testing.assert_allclose(array, others[name], rtol=1e-3, atol=1e-5, err_msg=name)
        else:
            np.testing.assert_array_equal(array, others[name], err_msg=name)


def test_each_seed_ends_as_a_run_alone(finished, alone):
    for one, two in zip(runs_in(finished), runs_in(alone), strict=True):
        close(one, two)
        assert (one / "run.json").read_bytes() == (two / "run.json").read_bytes()
        assert {each.name for each in one.iterdir()} == {each.name for each in two.iterdir()}
    with pytest.raises(AssertionError):
        close(*runs_in(finished))


def test_a_single_seed_is_an_ordinary_run(alone, tmp_path):
    compilations = train_chunk.compilations()
    run(tmp_path, seeds=[3])
    assert train_chunk.compilations() == compilations
    same(tmp_path / "seed-3", alone / "seed-3")


class CtrlCOnce(CtrlC):
    """Presses Ctrl-C at a step of the first run."""

    def metrics(self, row):
        if row["run"] == "seed-0":
            super().metrics(row)


def test_ctrl_c_saves_all_and_they_go_on_to_the_same_bits(finished, tmp_path):
    reporter = CtrlCOnce(60)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, report=reporter)
    assert reporter.said[1:] == [
        f"Saved at step 60. Continue with: dropin train --resume {tmp_path} --together"
    ]
    for path in runs_in(tmp_path):
        assert RunDirectory(path).steps() == [0, 40, 60]
    resume_together(tmp_path, report="none")
    same_bits(finished, tmp_path)


class KilledBetween(Reporter):
    """Ends the process, as it were, when one run has its checkpoint of a step and others not."""

    def __init__(self, step):
        self.step, self.said = step, []

    def evaluation(self, row):
        if (row["run"], row["step"]) == ("seed-3", self.step):
            raise SystemError

    def say(self, sentence):
        self.said.append(sentence)


@pytest.mark.parametrize(("step", "keep"), [(0, 3), (80, 1)])
def test_killed_between_two_checkpoints_they_go_on_to_the_same_bits(finished, tmp_path, step, keep):
    with pytest.raises(SystemError):
        run(tmp_path, report=KilledBetween(step), keep=keep)
    ahead, behind = (RunDirectory(path).steps() for path in runs_in(tmp_path))
    assert (ahead, behind) == (([0], []) if step == 0 else ([40, 80], [40]))
    reporter = KilledBetween(-1)
    resume_together(tmp_path, report=reporter)
    same_bits(finished, tmp_path)
    first = "Compiling" if step == 0 else "Continuing at step 40, which all runs have reached."
    assert reporter.said[0].startswith(first)


def test_each_can_go_on_alone(finished, copy):
    for path in runs_in(copy):
        cut_back(path, 40)
    for path, whole in zip(runs_in(copy), runs_in(finished), strict=True):
        resume_run(path, report="none")
        close(path, whole)


def test_runs_that_are_not_at_the_same_step_are_refused(copy):
    cut_back(copy / "seed-3", 40)
    before = {
        path: path.read_bytes()
        for path in copy.rglob("*")
        if path.is_file() and path.name != LOCK_FILE
    }
    with pytest.raises(InputError) as error:
        resume_together(copy, report="none")
    assert str(error.value) == (
        f"The runs in {copy} are not at the same step (seed-0 at 120, seed-3 at 40): without"
        f" --together, dropin train --resume {copy} continues them one by one."
    )
    shutil.rmtree(copy / "seed-3" / "checkpoints")
    with pytest.raises(InputError, match="seed-0 at 120, seed-3 at 0"):
        resume_together(copy, report="none")
    assert all(path.read_bytes() == data for path, data in before.items() if path.exists())


def test_runs_that_differ_in_more_than_their_seeds_are_refused(copy):
    path = copy / "seed-3" / "run.json"
    kept = json.loads(path.read_text())
    kept["config"]["log_every"] = 40
    path.write_text(json.dumps(kept))
    with pytest.raises(InputError, match=r"more than their seeds \(log_every: 20, not 40\): with"):
        resume_together(copy, report="none")


def test_a_damaged_checkpoint_sets_all_back(finished, copy):
    path = RunDirectory(copy / "seed-3").checkpoint(120)
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.warns(UserWarning, match=r"seed-3.*damaged.* The checkpoint before it is used"):
        agents = resume_together(copy, report="none")
    same_bits(finished, copy)
    for agent, path in zip(agents, runs_in(copy), strict=True):
        check_close(to_arrays(agent.policy), read_arrays(path / "agent.safetensors")[0])


def test_a_number_that_is_not_finite_stops_all_and_names_the_seed(copy):
    for path in runs_in(copy):
        cut_back(path, 80)
    path = RunDirectory(copy / "seed-3").checkpoint(80)
    arrays, about = read_arrays(path)
    arrays["train_state.network.value.graph.individual.layers[0].bias"][0] = np.nan
    write_arrays(path, arrays, about)
    with pytest.raises(StoppedError) as error:
        resume_together(copy, report="none")
    assert str(error.value) == (
        "A loss of seed 3 was not a finite number at step 80; all runs stopped there. The"
        f" checkpoint of step 80 is the last good one: {path}. The others can go on without"
        f" --together: dropin train --resume {copy}"
    )
    for path in runs_in(copy):
        assert RunDirectory(path).steps() == [40, 80]
        assert [int(row["step"]) for row in read_table(path / "metrics.csv")] == [20, 40, 60, 80]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"seeds": []}, "at least one and each once"),
        ({"seeds": [1, 1]}, "at least one and each once"),
        ({"seed": 1}, "Give the seeds of the runs in `seeds`"),
        ({"seeds": [-1]}, "seed -1 is too small"),
        ({"keep": 0}, "Keep 0 is too small"),
        ({"resume": True}, "Unknown setting of gpl-q 'resume'"),
    ],
)
def test_wrong_input_is_refused_and_leaves_nothing(tmp_path, changes, says):
    with pytest.raises(InputError, match=says):
        run(tmp_path / "runs", **changes)
    assert not (tmp_path / "runs").exists()


def test_no_run_is_made_if_one_of_them_exists(tmp_path):
    (tmp_path / "seed-3").mkdir()
    (tmp_path / "seed-3" / "note.txt").write_text("mine")
    with pytest.raises(InputError, match=r"seed-3 exists already"):
        run(tmp_path)
    assert not (tmp_path / "seed-0").exists()
    with pytest.raises(InputError, match="There is no run in"):
        resume_together(tmp_path)


@pytest.mark.slow
def test_an_environment_of_ones_own_has_to_be_given_again(tmp_path):
    env = make("lbf", rules="reference", slots=4, types=["H6"])
    given: dict[str, Any] = {name: each for name, each in tiny.RUN.items() if name != "types"}
    given["steps"] = 40
    train_together(env, "gpl-q", SEEDS, directory=tmp_path, **given)
    with pytest.raises(InputError, match="environment object: give it again"):
        resume_together(tmp_path)
    assert len(resume_together(tmp_path, env=env, report="none")) == 2


TYPES = {"lbf": ("H5", "H6"), "wolfpack": ("H1", "H4", "H5"), "fortattack": ("G2", "G4", "A1")}
"""Types that are computed where they are needed are among them."""


def setting(game, learner, **changes):
    """The environment, the learner, and a function that makes the first state of a seed."""
    sizes: dict[str, Any] = tiny.SETTINGS
    if not learner.startswith("gpl"):
        sizes = {**tiny.SIZES, "first_hidden_size": 4, "second_hidden_size": 4}
    if learner in ("dgn", "maddpg"):
        sizes = sizes | {"replay_capacity": 24, "batch_size": 4}
    config = run_config(
        game, learner, types=TYPES[game], training=tiny.TRAINING, game_settings={"horizon": 10},
        **sizes | changes,
    )  # fmt: skip
    made = registry.learners[learner].make(config.settings, config.training)
    env = config.make_env()
    return env, made, lambda seed: RunState(made.init(jax.random.key(seed), env), jnp.int32(0))


def stacked(first, seeds):
    states = blank_states(eqx.filter_eval_shape(lambda: first(0)), len(seeds))
    for index, seed in enumerate(seeds):
        states = set_state((jnp.int32(index), first(seed)), states)
    return states


UPDATES = {"lbf": 20, "wolfpack": 20, "fortattack": 3}
"""In FortAttack positions are rounded, and rounding decides whether an attacker that walks up a
column thrusts again: 0.15 - 0.3 * 0.3 < 0.06. So episodes soon differ."""
LEARNERS = ("gpl-q", "gpl-spi", "ql", "ql-am", "gnn", "gnn-am", "dgn", "maddpg")


@pytest.mark.parametrize(
    ("game", "learner"),
    [
        pytest.param(game, learner, marks=[pytest.mark.slow] * ((game, learner) != ("lbf", "dgn")))
        for game in TYPES
        for learner in LEARNERS
    ],
)
def test_a_chunk_of_three_seeds_is_that_of_each(game, learner):
    """With a replay buffer that is written all around."""
    seeds = (5, 1, 2)
    env, made, first = setting(game, learner)
    number = UPDATES[game]
    fixed = (env, made, jnp.int32(number))
    states = stacked(first, seeds)
    given = jax.tree.leaves(eqx.filter(states, eqx.is_array))
    states, metrics, nonfinite = train_chunk(fixed, states)
    assert all(leaf.is_deleted() for leaf in given)  # The buffers were donated.
    assert states.updates.tolist() == nonfinite.metric.tolist() == [number] * 3
    for index, seed in enumerate(seeds):
        state, own, _ = train_chunk(fixed, first(seed))
        others = to_arrays(get_state(states, jnp.int32(index)))
        check_close(to_arrays(state), others, exact_game=game != "fortattack")
        for name, metric in own.items():
            shares = jax.tree.map(lambda leaf: leaf[index], metrics[name])  # noqa: B023
            np.testing.assert_allclose(
                jax.tree.leaves(metric), jax.tree.leaves(shares), rtol=1e-4, atol=1e-5
            )


def two_seeds(learner, capacity):
    """The arguments of a chunk of two seeds, and the leaves of their replay buffers."""
    env, made, first = setting("lbf", learner, replay_capacity=capacity)
    states = blank_states(eqx.filter_eval_shape(lambda: first(0)), 2)
    return ((env, made, jnp.int32(1)), states), jax.tree.leaves(states.train_state.replay.rows)


def equations(jaxpr):
    """All equations of a program, with those of its loops and functions."""
    for each in jaxpr.eqns:
        yield each
        for value in jax.tree.leaves(each.params, is_leaf=lambda value: hasattr(value, "jaxpr")):
            if hasattr(value, "jaxpr"):
                yield from equations(value.jaxpr)


@pytest.mark.slow
@pytest.mark.parametrize("learner", ["dgn", "maddpg"])
def test_replay_buffers_are_only_scattered_to(learner):
    """A `cond` under `vmap` would select between two whole buffers."""
    arguments, leaves = two_seeds(learner, 240)
    program = eqx.filter_make_jaxpr(train_chunk._function)(*arguments)[0]
    shapes = {leaf.shape for leaf in leaves}
    by = {
        each.primitive.name
        for each in equations(program.jaxpr)
        if any(getattr(out.aval, "shape", None) in shapes for out in each.outvars)
    }
    assert by == {"jit", "scatter", "while"}


@pytest.mark.slow
@pytest.mark.parametrize("learner", ["dgn", "maddpg"])
def test_replay_buffers_are_written_in_place(learner):
    """What the compiled program needs besides its arguments is little."""
    arguments, leaves = two_seeds(learner, 24_000)
    program = train_chunk._jitted.lower(*arguments).compile()
    needed = program.compiled.memory_analysis().temp_size_in_bytes
    assert 0 < needed < sum(leaf.nbytes for leaf in leaves) / 10


@pytest.mark.slow
def test_a_thousand_environments(tmp_path):
    training = TrainConfig(num_envs=1024)
    tiny.run(tmp_path / "run", steps=2 * 4096, log_every=4096, training=training)
    rows = read_table(tmp_path / "run" / "metrics.csv")
    assert [int(row["step"]) for row in rows] == [4096, 8192]
    assert all(np.isfinite(float(row["value_loss"])) for row in rows)
    (states, _) = read_arrays(RunDirectory(tmp_path / "run").checkpoint(8192))
    assert states["train_state.running.returns"].shape == (1024,)
