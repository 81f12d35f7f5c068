import json
from pathlib import Path

import numpy as np
import pytest

import dropin
from dropin.core import registry
from dropin.core.errors import InputError
from dropin.experiments.planning import identity
from dropin.games.fortattack import Shooting
from dropin.teams.changes import AlternatingPools, Turncoat
from dropin.teams.dynamics import MAX_BYTES, Dynamics, load_dynamics, plain_openness
from dropin.teams.openness import Churn, Closed, Durations
from dropin.training.config import RunConfig, run_config
from dropin.training.run_directory import RunDirectory

CHURN = {"kind": "churn", "probability": 0.1, "min_stay": 5}
TURNCOAT = {"kind": "turncoat", "interval": [10, 30]}
BOTH = """
[openness]
kind = "churn"
probability = 0.1
min_stay = 5

[type_changes]
kind = "turncoat"
interval = [10, 30]
"""
KEPT = (
    Path(__file__).parents[2] / "docs" / "results" / "campaign" / "lbf-gpl-q-reference" / "seed-0"
)


@pytest.fixture
def both(tmp_path):
    path = tmp_path / "both.toml"
    path.write_text(BOTH)
    return path


def test_a_file_says_what_the_mappings_say(both):
    assert load_dynamics(both) == Dynamics(CHURN, TURNCOAT)
    for openness, changes in ((CHURN, TURNCOAT), (both, both), (str(both), str(both))):
        env = dropin.make("lbf", types=["H6", "H1"], openness=openness, type_changes=changes)
        assert isinstance(env.team.openness, Churn)
        assert float(env.team.openness.probability) == pytest.approx(0.1)
        assert int(env.team.openness.min_stay) == 5
        assert isinstance(env.team.type_changes, Turncoat)
        assert np.asarray(env.team.type_changes.interval).tolist() == [10, 30]


def test_every_kind_is_made_of_its_parameters():
    def team(game="lbf", **given):
        return dropin.make(game, team_limit=3, types=given.pop("types", ["H1", "H6"]), **given).team

    assert isinstance(team(openness={"kind": "closed"}).openness, Closed)
    made = team(
        openness={"kind": "durations", "active": [5, 8], "waiting": [2, 3], "population": 6}
    ).openness
    assert isinstance(made, Durations)
    assert made.population == 6
    assert np.asarray(made.active).tolist() == [5, 8]
    plain = team(openness="durations").openness
    assert isinstance(plain, Durations)
    assert np.asarray(plain.waiting).tolist() == [10, 20]
    shooting = dropin.make("fortattack", openness={"kind": "shooting", "max_waiting_time": 20})
    assert isinstance(shooting.team.openness, Shooting)
    assert float(shooting.team.openness.max_waiting_time) == 20
    changes = {"kind": "alternating", "pools": [["H1"], ["H6"]], "period": 25}
    alternating = team(type_changes=changes).type_changes
    assert isinstance(alternating, AlternatingPools)
    assert alternating.masks.tolist() == [[True, False], [False, True]]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[opennes]\nkind = 'closed'", "Unknown table 'opennes'.*did you mean 'openness'"),
        ("", "none of the tables"),
        ("openness = 3", "openness 3 cannot be used"),
        ("[openness]\nprobability = 0.1", "openness has no kind"),
        ("[openness]\nkind = 'chrn'", "Unknown openness 'chrn'.*did you mean 'churn'"),
        ("[openness]\nkind = 'churn'\nrate = 1", "Unknown parameter of churn 'rate'"),
        ("[openness]\nkind = 'closed'\nrate = 1", "'closed' has no parameters, but 'rate'"),
        ("[openness]\nkind = 'churn'\nprobability = nan", "nan is no finite number"),
        ("[openness]\nkind = 'churn'\nmin_stay = 1979-05-27", "is a date or a time"),
        ("[type_changes]\nkind = 'turncat'", "Unknown kind of type changes 'turncat'"),
        ("[openness\n", "cannot be read as TOML"),
        ("a = " + "[" * 5000, "cannot be read as TOML"),
    ],
)
def test_an_impossible_file_is_refused(tmp_path, text, says):
    path = tmp_path / "odd.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=f"(?s)odd.toml.*{says}"):
        load_dynamics(path)


def test_a_file_that_cannot_be_read_is_refused(tmp_path):
    path = tmp_path / "odd.toml"
    with pytest.raises(InputError, match="There is no file"):
        load_dynamics(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="not a text in UTF-8"):
        load_dynamics(path)
    path.write_bytes(b"#" * (MAX_BYTES + 1))
    with pytest.raises(InputError, match="it has more than"):
        load_dynamics(path)
    with pytest.raises(InputError, match="cannot be read"):
        load_dynamics(tmp_path)
    path.write_text("[openness]\nkind = 'closed'")
    with pytest.raises(InputError, match=r"no table \[type_changes\]"):
        dropin.make("lbf", types=["H1"], type_changes=path)
    with pytest.raises(InputError, match="'turncoat' is not a TOML file"):
        dropin.make("lbf", types=["H1"], type_changes="turncoat")


@pytest.mark.parametrize(
    ("openness", "says"),
    [
        ({"kind": "churn", "probability": 2}, "probability 2 cannot be used"),
        ({"kind": "churn", "initial_size": 2.5}, "initial_size 2.5 cannot be used"),
        ({"kind": "churn", "min_stay": True}, "min_stay True cannot be used"),
        ({"kind": "durations", "active": [5, 3]}, "active duration is 5 to 3"),
        ({"kind": "durations", "active": 5}, "active duration 5 cannot be used"),
        ({"kind": "durations", "waiting": ["a", 3]}, "waiting duration 'a'"),
        ({"kind": "durations", "population": 10**12}, "population 1000000000000"),
        ({"kind": "schedule", "start": "all"}, "start 'all' cannot be used"),
        ({"kind": "schedule", "events": [[1, "enters"]]}, "no entry of a schedule"),
        ({"kind": "schedule", "events": [[1, "jumps", 1]]}, "'leaves' or 'enters'"),
        ({"kind": "schedule", "events": 3}, "events 3 are no list"),
        ({"kind": "schedule", "every": -1}, "every -1 cannot be used"),
        ({"kind": "shooting"}, "Shooting is for"),
    ],
)  # fmt: skip
def test_impossible_parameters_are_refused(openness, says):
    with pytest.raises(InputError, match=says):
        dropin.make("lbf", types=["H1"], openness=openness)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"kind": "turncoat"}, "needs the parameter 'interval'"),
        ({"kind": "turncoat", "interval": [0, 3]}, "interval 0 cannot be used"),
        ({"kind": "alternating", "pools": ["H1"], "period": 3}, "are no lists of types"),
        ({"kind": "alternating", "pools": [["H2"]], "period": 3}, "Unknown type 'H2'"),
        ({"kind": "alternating", "pools": [["H1"]], "period": 0}, "period 0 cannot be used"),
    ],
)
def test_impossible_type_changes_are_refused(changes, says):
    with pytest.raises(InputError, match=says):
        dropin.make("lbf", types=["H1"], type_changes=changes)


def test_factories_without_parameters_still_work(monkeypatch):
    monkeypatch.setattr(registry.openness, "_items", dict(registry.openness._all()))
    registry.register_openness("still", lambda rules, game, slots: Closed())
    assert isinstance(dropin.make("lbf", types=["H1"], openness="still").team.openness, Closed)
    assert plain_openness({"kind": "still"}) == {"kind": "still"}
    with pytest.raises(InputError, match="'still' has no parameters, but 'pace' is given"):
        plain_openness({"kind": "still", "pace": 3})


def test_a_run_stores_the_data_and_keeps_its_identity_without_it(both):
    config = run_config("lbf", "gpl-q", openness=str(both), type_changes=str(both))
    stored = json.loads(json.dumps(config.to_dict()))
    assert (stored["openness"], stored["type_changes"]) == (CHURN, TURNCOAT)
    again = RunConfig.from_dict(stored)
    assert again.to_dict() == stored
    tuples = {"kind": "turncoat", "interval": (10, 30)}
    same = run_config("lbf", "gpl-q", openness=CHURN, type_changes=tuples)
    assert identity(same) == identity(again) == identity(config)
    assert identity(run_config("lbf", "gpl-q", openness=CHURN)) != identity(config)
    assert "type_changes" not in run_config("lbf", "gpl-q").to_dict()
    # As it was before there were type changes.
    assert identity(RunDirectory(KEPT).config()) == "0524ddc6115eeccb"
    with pytest.raises(InputError, match="Unknown parameter of churn 'rate'"):
        run_config("lbf", "gpl-q", openness={"kind": "churn", "rate": 1})


def test_the_file_of_the_page_is_the_example_and_can_be_used():
    root = Path(__file__).parents[2]
    example = root / "examples" / "dynamics.toml"
    assert f"```toml\n{example.read_text()}```" in (root / "docs" / "openness.md").read_text()
    env = dropin.make("lbf", team_limit=5, openness=example, type_changes=example)
    assert isinstance(env.team.openness, Churn)
    assert isinstance(env.team.type_changes, Turncoat)
