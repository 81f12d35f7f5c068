import pytest

from dropin.core.errors import InputError
from dropin.experiments.benchmark.replay import task_rules
from dropin.experiments.benchmark.results import About
from dropin.experiments.benchmark.tasks import select_tasks

TASKS = select_tasks(["lbf/standard", "lbf/crowd"])


def test_a_task_asks_for_its_limits_its_budget_and_its_episodes():
    standard, crowd = task_rules(TASKS, About("gpl-q", kind="dropin"))
    assert (standard.name, standard.version, standard.team_limits) == ("lbf/standard", 1, (3, 5))
    assert (standard.steps, standard.episodes) == (6_400_000, 800)
    assert crowd.team_limits == (5, 7, 9)


def test_a_small_version_is_shorter():
    # 6,400,000 / 50 is 2000 updates of 64 steps.
    (rules, _) = task_rules(TASKS, About("gpl-q", kind="dropin", scale=0.02))
    assert (rules.steps, rules.episodes) == (128_000, 80)


def test_best_responses_are_of_the_learner_that_was_trained():
    about = About("best-response", kind="dropin", training={"learner": "ql"})
    assert [each.steps for each in task_rules(TASKS, about)] == [6_400_000] * 2


@pytest.mark.parametrize(
    ("learner", "says"),
    [
        (
            "lbf/gpl-q",
            "results of one agent, lbf/gpl-q: a submission has all runs of a learner",
        ),
        ("gplq", "Unknown learner 'gplq'.*did you mean 'gpl-q'"),
    ],
)
def test_results_of_no_learner_are_refused(learner, says):
    with pytest.raises(InputError, match=says):
        task_rules(TASKS, About(learner, kind="dropin"))
