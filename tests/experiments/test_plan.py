"""What is there is used, what is not is planned."""

import pytest
from made_up import make_up

from dropin.errors import InputError
from dropin.experiments.choices import Choices
from dropin.experiments.diversity import split_of
from dropin.experiments.grid import Grid
from dropin.experiments.items import ITEMS, find_items
from dropin.experiments.plan import Progress, plan
from dropin.experiments.runs import identity
from dropin.training.config import EvaluationConfig, run_config
from dropin.training.directory import RunDirectory

ONE = {"": Grid(games=("lbf",), learners=("ql",), seeds=1)}
CHOICES = Choices(steps=640)
RETURNS = {3: [0.0, 1.0], 5: [0.0, 1.0]}


def only(tmp_path, *places, agents=False):
    (job,) = plan(ONE, CHOICES, tmp_path / "home", places, agents=agents)
    return job


def test_a_run_elsewhere_is_used(tmp_path):
    job = only(tmp_path)
    assert job.progress is Progress.MISSING
    assert job.seconds > 0
    assert job.kept.path.is_relative_to(tmp_path / "home")
    make_up(tmp_path / "elsewhere" / "deep", job.config, RETURNS)
    found = only(tmp_path, tmp_path / "elsewhere")
    assert (found.progress, found.seconds) == (Progress.DONE, 0.0)
    assert found.kept.path == tmp_path / "elsewhere" / "deep"
    # Without the agents it serves no experiment that looks at them.
    assert only(tmp_path, tmp_path / "elsewhere", agents=True).progress is Progress.MISSING


def test_a_run_that_was_not_tested_with_larger_teams_does_not_serve(tmp_path):
    config = only(tmp_path).config
    make_up(tmp_path / "elsewhere", config, {3: [0.0, 1.0]})
    assert only(tmp_path, tmp_path / "elsewhere").progress is Progress.MISSING


def test_a_run_without_the_returns_of_the_estimator_does_not_serve(tmp_path):
    legacy = Choices(steps=640, estimator="legacy")
    files = make_up(tmp_path / "elsewhere", only(tmp_path).config, RETURNS)
    places = [tmp_path / "elsewhere"]
    (job,) = plan(ONE, legacy, tmp_path / "home", places)
    assert job.progress is Progress.DONE
    text = files.evaluation.path.read_text()
    files.evaluation.path.write_text(text.replace(",100.0,", ",,").replace(",101.0,", ",,"))
    (job,) = plan(ONE, legacy, tmp_path / "home", places)
    assert job.progress is Progress.MISSING
    assert only(tmp_path, *places).progress is Progress.DONE


def test_a_run_whose_last_evaluation_is_half_written_is_not_done(tmp_path):
    files = make_up(tmp_path / "home" / "run", only(tmp_path).config, RETURNS)
    assert only(tmp_path).progress is Progress.DONE
    lines = files.evaluation.path.read_text().splitlines(keepends=True)
    files.evaluation.path.write_text("".join(lines[:-1]))
    assert only(tmp_path).progress is Progress.BEGUN


def test_beginning_creates_the_run_once(tmp_path):
    job = only(tmp_path)
    job.begin()
    job.begin()
    files = RunDirectory(job.kept.path)
    assert identity(files.config()) == identity(job.config)
    assert files.keep(None) == "agents"
    again = only(tmp_path)
    assert again.kept.path == job.kept.path
    # Nothing of it has run yet.
    assert again.progress is Progress.MISSING


def test_a_grid_that_nothing_is_left_of(tmp_path):
    with pytest.raises(InputError, match="it has lbf and ql"):
        plan(ONE, Choices(learners=("dgn",)), tmp_path)


def test_settings_reach_every_run():
    choices = Choices(steps=640, settings={"training": {"envs": 4}, "settings": {"discount": 0.5}})
    (run,) = ONE[""].runs(choices)
    assert (run.training.envs, run.settings.discount) == (4, 0.5)
    plain = run_config("lbf", "ql", evaluation=EvaluationConfig(team_limits=(5,)))
    assert identity(ONE[""].runs(Choices())[0]) == identity(plain)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"scale": 0.0}, "scale 0 is out of range"),
        ({"scale": 1.5}, "out of range"),
        ({"scale": 0.5, "steps": 10}, "steps or a scale"),
        ({"seeds": 0}, "number of seeds is 0"),
        ({"games": ("chess",)}, "Unknown game 'chess'"),
        ({"learners": ("qll",)}, "did you mean 'ql'"),
        ({"estimator": "best"}, "Unknown estimator"),
        ({"limits": (1,)}, "Team limit 1 is too small"),
        ({"rules": "mine"}, "Unknown rules"),
    ],
)
def test_wrong_choices_are_named(wrong, said):
    with pytest.raises(InputError, match=said):
        Choices(**wrong)


def test_every_experiment_has_runs_and_says_where_it_is_in_the_paper():
    for item in ITEMS.values():
        runs = [run for grid in item.grids(Choices()).values() for run in grid.runs(Choices())]
        assert runs
        assert item.title
        assert item.where
    with pytest.raises(InputError, match="did you mean 'table2'"):
        find_items("tabel2", Choices())
    everything = find_items("all", Choices())
    assert {each.name for each in everything} == set(ITEMS) - {"held-out"}
    assert [each.name for each in find_items("all", Choices(learners=("maddpg",)))] == [
        "figure2", "table2", "partners",
    ]  # fmt: skip


def test_the_heat_maps_train_with_each_type_alone_and_with_all():
    grids = ITEMS["diversity"].grids(Choices())
    assert len(grids) == 10
    (run, *_), everything = grids["with H7"].runs(Choices()), grids["with all"].runs(Choices())
    assert (run.types, run.team_limit, run.learner) == (("H7",), 2, "ql")
    assert run.environment().slots == 2
    assert everything[0].types is None
    assert everything[0].environment().team.pool.alike
    assert sum(len(grid.runs(Choices())) for grid in grids.values()) == 2 * 10 * 4


def test_in_a_team_of_two_there_is_one_attacker_for_one_teammate():
    (run, *_) = ITEMS["team-of-two"].grids(Choices())[""].runs(Choices(games=("fortattack",)))
    env = run.environment(slots=5)
    assert env.sides == (0,) * 5 + (1,) * 4
    for limit in (2, 3, 5):
        arena = env.with_limit(limit)
        seats = arena.game.seats(arena.team.slots, arena.team.limit)
        assert seats.tolist() == [True] * limit + [False] * (5 - limit) + [True] * (limit - 1) + [
            False
        ] * (5 - limit)


def test_splits():
    assert split_of(Choices())["lbf"][1] == ("H6", "H7", "H8", "H9")
    own = Choices(split="H1,H2/H3", games=("lbf",))
    assert split_of(own) == {"lbf": (("H1", "H2"), ("H3",))}
    grids = ITEMS["held-out"].grids(own)
    assert list(grids) == ["train", "H3 alone"]
    assert grids["train"].runs(own)[0].types == ("H1", "H2")
    assert grids["H3 alone"].runs(own)[0].types == ("H3",)
    for wrong, said in (
        (Choices(split="H1/H2"), "for one game"),
        (Choices(split="H1/", games=("lbf",)), "not a split"),
        (Choices(split="H1/H99", games=("lbf",)), "Unknown type of lbf 'H99'"),
        (Choices(split="ciao"), "Unknown split"),
    ):
        with pytest.raises(InputError, match=said):
            split_of(wrong)
