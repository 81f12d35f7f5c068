"""Figures 2 and 3a and appendix F from runs whose numbers are known."""

from made_up import TRAINING, fill, make_experiment, sheet_rows

from dropin.experiments import Options

SMALL = Options(steps=640, seeds=2, games=("lbf",))


def test_figure_2_has_our_curves_and_the_papers(tmp_path):
    result = fill(tmp_path, "figure2", SMALL, TRAINING).result()
    (row,) = sheet_rows(result)
    assert row["best"].startswith("7.00 (")
    assert (row["at step"], row["last"][:4], row["paper: best"][:4]) == ("320", "3.50", "3.77")
    ours, paper = result.charts[0].panels
    assert [line.label for line in ours.lines] == [line.label for line in paper.lines] == ["ql"]
    assert ours.lines[0].y == [4.5, 7.0, 3.5]
    assert ours.lines[0].individual == [[9.0, 8.0, 0.0], [0.0, 6.0, 7.0]]
    assert paper.lines[0].dashed
    assert len(paper.lines[0].x) == 40
    # Beside the paper's millions of steps a small version would be a dot.
    assert not result.charts[0].share_axes


def test_a_game_without_runs_is_not_drawn(tmp_path):
    fill(tmp_path, "figure2", SMALL, TRAINING)
    experiment = make_experiment(tmp_path, "figure2", Options(steps=640, seeds=2))
    panels = experiment.result().charts[0].panels
    assert [panel.title for panel in panels] == ["lbf, ours", "lbf, the paper's"]
    assert "wolfpack" in {job.config.game for job in experiment.completed_runs().missing}


def test_in_figure_3a_a_learner_that_never_shoots_has_an_accuracy_of_zero(tmp_path):
    options = Options(steps=640, seeds=1)
    returns = {("", name, 0): {3: [0.0, 1.0], 5: [0.0, 1.0]} for name in ("gpl-q", "ql")}
    accuracy = {("", "gpl-q", 0): [0.1, 0.4], ("", "ql", 0): ["", ""]}
    result = fill(tmp_path, "figure3a", options, returns, accuracy=accuracy).result()
    gpl, ql = sheet_rows(result)
    assert (gpl["last"], gpl["paper: last"]) == ("0.400", "0.299")
    assert (ql["last"], ql["paper: last"]) == ("0.000", "0.065")
    ours, paper = result.charts[0].panels
    assert [line.label for line in ours.lines] == ["gpl-q", "ql"]
    assert [line.dashed for line in paper.lines] == [True, True]


def test_among_partners_the_checkpoint_is_chosen_among_partners(tmp_path):
    key = ("", "dgn", 0)
    returns = {key: {3: [1.0, 5.0, 2.0], 5: [10.0, 11.0, 12.0]}}
    partners = {key: {3: [7.0, 1.0, 9.0], 5: [20.0, 21.0, 22.0]}}
    options = Options(steps=640, seeds=1, games=("wolfpack",))
    result = fill(tmp_path, "partners", options, returns, partners=partners).result()
    (row,) = sheet_rows(result)
    cells = [
        row[f"{teammates}, limit {limit}"]
        for teammates in ("partners", "strangers")
        for limit in (3, 5)
    ]
    assert cells == ["9.00 (n = 1)", "22.00 (n = 1)", "5.00 (n = 1)", "11.00 (n = 1)"]
    assert row["paper: partners, limit 5"] == "9.36 ± 2.46"
    assert row["paper: strangers, limit 5"] == "2.18 ± 0.66"
    assert [panel.title for panel in result.charts[0].panels] == [
        "wolfpack, ours, partners", "wolfpack, ours, strangers", "wolfpack, the paper's, strangers",
    ]  # fmt: skip
