"""The runs and splits of the experiments on types, and their results."""

import numpy as np
import pytest
from made_up import make_experiment, sheet_rows, write_run

from dropin.core import registry
from dropin.core.errors import InputError
from dropin.experiments import Options
from dropin.experiments.analyses import AnalysisCache
from dropin.experiments.type_diversity import split_types, type_names


def test_the_heat_maps_train_with_each_type_alone_and_with_all():
    grids = registry.experiments["diversity"].grids(Options())
    assert len(grids) == 10
    (config, *_) = grids["with H7"].run_configs(Options())
    (anybody, *_) = grids["with all"].run_configs(Options())
    assert (config.types, config.team_limit, config.learner) == (("H7",), 2, "ql")
    assert config.make_env().slots == 2
    assert anybody.types is None
    assert anybody.make_env().team.pool.shared_type
    assert sum(len(grid.run_configs(Options())) for grid in grids.values()) == 2 * 10 * 4


def test_splits():
    assert split_types(Options())["lbf"][1] == ("H6", "H7", "H8", "H9")
    own = Options(split="H1,H2/H3", games=("lbf",))
    assert split_types(own) == {"lbf": (("H1", "H2"), ("H3",))}
    grids = registry.experiments["held-out"].grids(own)
    assert list(grids) == ["train", "H3 alone"]
    assert grids["train"].run_configs(own)[0].types == ("H1", "H2")
    assert grids["H3 alone"].run_configs(own)[0].types == ("H3",)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"split": "H1/H2"}, "for one game"),
        ({"split": "H1/", "games": ("lbf",)}, "not a split"),
        ({"split": "H1/H99", "games": ("lbf",)}, "Unknown type of lbf 'H99'"),
        ({"split": "ciao"}, "Unknown split"),
    ],
)
def test_wrong_splits_are_named(options, message):
    with pytest.raises(InputError, match=message):
        split_types(Options(**options))


def test_a_type_of_ones_own_can_be_held_out(monkeypatch):
    make = registry.games["lbf"].types("paper")["H1"]
    monkeypatch.setitem(registry._types, "lbf", {"mine": make})
    assert type_names("lbf", "paper")[-1] == "mine"
    own = Options(split="H1,H2/mine", games=("lbf",))
    assert split_types(own)["lbf"][1] == ("mine",)
    # The paper's heat maps stay as they are.
    assert "with mine" not in registry.experiments["diversity"].grids(Options())


@pytest.fixture
def returns_by_type(monkeypatch):
    """Make every agent return 8 with types of its training and 2 with all others."""

    def get(self, analysis, run, step, compute, *, types, team_limit, **more):
        assert (analysis, step, more["episodes"]) == ("return", 640, 320)
        known = run.config.types is None or set(types) <= set(run.config.types)
        return (8.0 if known else 2.0) + run.config.seed + team_limit / 100

    monkeypatch.setattr(AnalysisCache, "get", get)


def finished(directory, name, options):
    """Return an experiment whose runs are done, the last checkpoint being the best."""
    for job in make_experiment(directory, name, options).jobs:
        returns = {limit: [0.0, 1.0] for limit in job.needs.team_limits}
        write_run(job.run.path, job.config, returns, agents=True)
    return make_experiment(directory, name, options)


def test_the_rows_of_a_heat_map_are_scaled(tmp_path, returns_by_type):
    options = Options(steps=640, seeds=2, games=("lbf",))
    result = finished(tmp_path, "diversity", options).result()
    names = [f"H{number}" for number in range(1, 10)]
    found = result.numbers["lbf"]
    assert (found["tested"], found["trained"]) == (names, [*names, "all"])
    # Over two seeds the mean is half above that of seed 0.
    expected = np.full((9, 10), 2.52) + 6.0 * np.eye(9, 10)
    expected[:, -1] = 8.52
    np.testing.assert_allclose(found["returns"], expected)
    (heat_map,) = result.charts[0].heat_maps
    np.testing.assert_allclose(heat_map.values[:, :9], np.eye(9), atol=1e-12)
    assert sheet_rows(result)[0]["H1"] == "8.52"


def test_returns_with_unknown_types_are_compared_with_learners_that_know_them(
    tmp_path, returns_by_type
):
    options = Options(
        steps=640, seeds=1, games=("lbf",), learners=("ql",), split="H1,H2/H2,H6",
        team_limits=(2, 4),
    )  # fmt: skip
    result = finished(tmp_path, "held-out", options).result()
    rows = {row["type"]: row for row in sheet_rows(result)}
    assert list(rows) == ["H1 (training)", "H2 (both)", "H6 (test)", "test, all"]
    assert rows["H1 (training)"]["limit 2"] == "8.02 (n = 1)"
    # Nobody is trained with a type of training alone, or with all types of testing.
    assert rows["H1 (training)"]["share, 2"] == rows["test, all"]["share, 2"] == "–"
    assert rows["H2 (both)"]["share, 4"] == "100 %"
    assert rows["H6 (test)"]["limit 4"] == "2.04 (n = 1)"
    assert rows["H6 (test)"]["share, 4"] == "25 %"
    share = result.numbers["lbf ql H6"]["4"]["share"]
    assert share == pytest.approx(2.04 / 8.04)
