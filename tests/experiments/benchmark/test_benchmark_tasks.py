"""The benchmark's tasks: those of the package are complete, and faults of others are named."""

import dataclasses
from pathlib import Path

import equinox as eqx
import jax
import pytest

from dropin.core import registry
from dropin.core.errors import InputError
from dropin.experiments.benchmark.runs import training_config
from dropin.experiments.benchmark.tasks import KINDS, builtin_tasks, read_tasks, select_tasks
from dropin.experiments.runs import PAPER_GAMES
from dropin.experiments.type_diversity import SPLITS
from dropin.training.config import EvaluationConfig, run_config

TASKS = builtin_tasks()

HEAD = """
game = "lbf"
rules = "reference"
steps = 6400
"""
TASK = """
[[task]]
name = "mine"
version = 1
kind = "own"
summary = "A task."
seed = 77
"""


def write(path: Path, *lines: str, head: str = HEAD, task: str = TASK) -> Path:
    file = path / "mine.toml"
    file.write_text(head + task + "\n".join(lines))
    return file


def test_every_game_has_tasks_of_every_kind():
    for game in PAPER_GAMES:
        kinds = {task.kind for task in TASKS if task.game == game}
        assert kinds == set(KINDS) - {"own"}
        names = {task.name.split("/")[1] for task in TASKS if task.game == game}
        assert {"turnover-fast", "turnover-slow", "turncoat"} < names
        assert {"script-exodus", "script-arrivals", "script-flip"} < names
        strangers = [task for task in TASKS if task.game == game and task.kind == "strangers"]
        assert sum(task.disjoint for task in strangers) >= 3
        (standard,) = (task for task in TASKS if task.name == f"{game}/standard")
        assert standard.test_limits == (3, 5)
        assert standard.train_types is standard.test_types is None
        (crowd,) = (task for task in TASKS if task.name == f"{game}/crowd")
        assert crowd.test_limits == (5, 7, 9)


def test_the_budgets_are_those_of_the_paper():
    for task in TASKS:
        assert task.steps == run_config(task.game, "gpl-q").steps
        assert task.rules == "reference"
        assert task.episodes == 800


def test_every_task_has_a_seed_of_its_own_that_no_run_uses_by_default():
    seeds = [task.seed for task in TASKS]
    assert len(set(seeds)) == len(seeds)
    assert min(seeds) > 1_000_003
    assert EvaluationConfig().seed not in seeds


@pytest.mark.parametrize("game", PAPER_GAMES)
def test_all_environments_can_be_made(game):
    for task in TASKS:
        if task.game == game:
            task.check()


def test_the_splits_of_ciao_are_those_of_its_experiment():
    for game in ("lbf", "wolfpack"):
        for name, split in (("strangers-ciao", "disjoint"), ("strangers-ciao-shared", "shared")):
            (task,) = select_tasks([f"{game}/{name}"])
            assert (task.train_types, task.test_types) == SPLITS[f"ciao-{split}"][game]
            assert task.disjoint == (split == "disjoint")


def test_only_the_types_of_the_test_can_be_drawn():
    (task,) = select_tasks(["fortattack/strangers-learned"])
    pool = task.make_test_env(3).team.pool
    assert pool.allowed is not None
    allowed = [name for name, ok in zip(pool.names, pool.allowed, strict=True) if ok]
    assert allowed == ["G4", "G6", "A1", "A2"]


@pytest.mark.parametrize("learner", ["ql", "maddpg"])
@pytest.mark.parametrize("game", PAPER_GAMES)
def test_learners_with_an_input_of_fixed_length_have_room_for_a_crowd(game, learner):
    standard, crowd = select_tasks([f"{game}/standard", f"{game}/crowd"])
    assert training_config(standard, learner).settings.max_agents_per_side == 5
    config = training_config(crowd, learner)
    assert config.settings.max_agents_per_side == 9
    env = crowd.make_test_env(9)
    made = registry.learners[learner].make(config.settings, config.training)

    def act(key):
        _, seen = env.reset(key)
        policy = made.policy_template(env.interface)
        return policy.act(key, seen, policy.init_memory(env.slots))[0]

    assert eqx.filter_eval_shape(act, jax.random.key(0)).shape == ()


def test_a_file_of_ones_own(tmp_path):
    lines = ('train_types = ["H1"]', 'test_types = ["H6", "H7"]', "disjoint = true")
    file = write(tmp_path, *lines)
    (task,) = select_tasks([str(file)])
    assert task.name == "lbf/mine"
    assert task.test_types == ("H6", "H7")
    assert [each.name for each in select_tasks([str(file), "lbf/crowd", "lbf/crowd"])] == [
        "lbf/mine",
        "lbf/crowd",
    ]


EXODUS = '{ kind = "schedule", events = [[3, "leaves", 1], [3, "leaves", 2]] }'


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('test_types = ["H66"]', "Unknown type of lbf 'H66'.*did you mean 'H6'"),
        ('test_types = ["H6", "H6"]', "test_types names H6 twice"),
        ("test_types = []", "test_types is empty"),
        ('test_types = "H6"', "The test types 'H6' is not a list"),
        ("disjoint = true", "disjoint, but H1, H2, H3"),
        ('train_types = ["H1", "H2"]\ntest_types = ["H2"]\ndisjoint = true', "disjoint, but H2 "),
        ("disjoint = 1", "The disjoint 1 is not true or false"),
        ("test_limits = [1]", "Team limit 1 is too small"),
        ("test_limits = [3, 3]", "Team limit 3 is given twice"),
        ("test_limits = [3.0]", r"\(3.0,\) is not a list in which each is a whole number"),
        ("test_limits = []", "no test_limits"),
        ("train_limit = 1", "The train limit 1 is too small"),
        ("episodes = 0", "The episodes 0 is too small"),
        ("test_openness = { active = [1, 2] }", "has to be a table with a kind"),
        ('test_openness = { kind = "churn", probability = nan }', "nan is no finite number"),
        ('test_openness = { kind = "churn", probability = 2.0 }', "probability 2.0 cannot be used"),
        ('test_openness = { kind = "chrun" }', "chrun.*did you mean 'churn'"),
        (f"test_limits = [3]\ntest_openness = {EXODUS}", "After step 3 .* the team has 1 agents"),
        ('test_type_changes = { kind = "turncoat", interval = [5, 2] }', "cannot be shorter"),
        ('test_type_changes = { kind = "turncoat", interval = [5, 9] }\nepisodes_per_type = 8',
         "no episodes_per_type"),
        ("game_version = 3", "for version 3 of lbf, and this is version 0"),
        ("tset_types = []", "Unknown setting of Task 'tset_types'"),
        ('kind = "own"', "cannot be read as TOML"),
    ],
)  # fmt: skip
def test_a_fault_is_one_sentence_that_names_the_task(tmp_path, line, message):
    file = write(tmp_path, line)
    with pytest.raises(InputError, match=message) as error:
        select_tasks([str(file)])
    text = str(error.value)
    assert "mine" in text
    assert "\n" not in text


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"head": HEAD.replace("lbf", "lfb")}, "Unknown game 'lfb'.*did you mean 'lbf'"),
        ({"head": HEAD.replace("reference", "refrence")}, "did you mean 'reference'"),
        ({"head": HEAD.replace("steps = 6400", "")}, "It has no steps"),
        ({"task": TASK + TASK}, "two tasks called lbf/mine"),
        ({"task": TASK.replace("mine", "lbf/mine")}, "holds a slash"),
        ({"task": TASK.replace('"own"', '"owned"')}, "did you mean 'own'"),
        ({"task": TASK.replace("77", "-1")}, "The seed -1 is too small"),
        ({"task": TASK.replace("version = 1", "version = 0")}, "The version 0 is too small"),
        ({"task": ""}, "has no tasks"),
        ({"task": "task = 3"}, "has no tasks"),
    ],
)
def test_a_fault_of_a_whole_file(tmp_path, changes, message):
    with pytest.raises(InputError, match=message):
        read_tasks(write(tmp_path, **changes))


def test_unknown_tasks_are_named_with_the_nearest_one(tmp_path):
    with pytest.raises(InputError, match=r"'lbf/standrad'.*did you mean 'lbf/standard'"):
        select_tasks(["lbf/standrad"])
    with pytest.raises(InputError, match="There is no file"):
        select_tasks([str(tmp_path / "no.toml")])
    same = write(tmp_path, task=TASK.replace("mine", "crowd"))
    with pytest.raises(InputError, match="two tasks called lbf/crowd"):
        select_tasks(["lbf", str(same)])


def test_the_identity_is_of_what_is_measured():
    (task,) = select_tasks(["lbf/standard"])
    assert dataclasses.replace(task, summary="Else.").identity == task.identity
    assert dataclasses.replace(task, seed=5).identity != task.identity
    assert dataclasses.replace(task, test_types=("H1",)).identity != task.identity
