"""The evaluation of a run's agent at every checkpoint."""

from collections.abc import Iterator, Sequence

import numpy as np

from dropin.agents import Agent, AgentPolicy
from dropin.core.config import PlainDict
from dropin.env import AnyEnv
from dropin.evaluation.evaluate import LEGACY_ENVS, LEGACY_EPISODES, legacy_means, run_episodes
from dropin.evaluation.statistics import estimate
from dropin.training.config import PARTNERS, RunConfig

__all__ = ["PAPER_LIMIT", "Evaluator", "evaluation_envs"]

PAPER_LIMIT = 5
"""The largest team limit of the paper's tests."""


def evaluation_envs(config: RunConfig, limits: Sequence[int]) -> dict[int, AnyEnv]:
    """Make the environments in which a run is evaluated, by team limit.

    They have as many slots as the largest limit. Limits above the paper's have slots of their own:
    how many agents exist besides those present may depend on the number of slots.

    Args:
        config: The settings of the run.
        limits: The team limits.
    """
    usual = max((limit for limit in limits if limit <= PAPER_LIMIT), default=0)
    wide = {slots: config.make_env(slots=slots) for slots in {max(usual, x) for x in limits}}
    return {limit: wide[max(usual, limit)].with_team_limit(limit) for limit in limits}


class Evaluator:
    """Evaluates agents as the settings of their run say.

    Args:
        config: The settings of the run; its seed does not matter.
        env: The environment, if it was given as an object.
    """

    def __init__(self, config: RunConfig, env: AnyEnv | None = None):
        self.config = config.evaluation
        limits = sorted({config.team_limit, *config.evaluation.team_limits})
        self.envs = evaluation_envs(config, limits) if env is None else {
            limit: env.with_team_limit(limit) for limit in limits
        }  # fmt: skip

    def rows(self, agent: Agent, step: int) -> Iterator[PlainDict]:
        """Evaluate an agent at every team limit, with all kinds of teammates, in every mode.

        Args:
            agent: The agent.
            step: The environment step that its run has come to.

        Yields:
            Rows of `evaluation.csv`.
        """
        for teammates in self.config.teammates:
            for limit, wide in self.envs.items():
                env = wide
                if teammates == PARTNERS:
                    env = wide.with_types([agent.as_type(wide.game)])
                for mode in agent.policy.modes:
                    row = {"step": step, "team_limit": limit, "teammates": teammates}
                    yield row | {"mode": mode, **self._measure(env, AgentPolicy(agent, mode))}

    def _measure(self, env: AnyEnv, policy: AgentPolicy) -> PlainDict:
        """Return the returns and metrics of a policy."""
        how = self.config
        played = run_episodes(
            env, policy, num_envs=how.num_envs, episodes=how.episodes, seed=how.seed
        )
        mean, unshaped = estimate(played.returns), played.unshaped
        legacy = None
        if how.num_envs >= LEGACY_ENVS and how.episodes >= LEGACY_EPISODES:
            legacy = float(np.mean(legacy_means(played.returns, played.ends)))
        return {
            "episodes": played.returns.size,
            "mean_return": mean.mean,
            "ci_low": mean.low,
            "ci_high": mean.high,
            "legacy_mean_return": legacy,
            "unshaped_mean_return": None if unshaped is None else float(np.mean(unshaped)),
            **played.metrics,
        }
