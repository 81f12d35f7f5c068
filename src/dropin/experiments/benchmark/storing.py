"""From the records of a benchmark to directories of results, one for each learner.

What earlier calls have stored there stays, unless it was measured anew.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from dropin.core.config import PlainDict, to_dict
from dropin.core.errors import InputError
from dropin.experiments.benchmark.records import Record
from dropin.experiments.benchmark.results import (
    RESULTS_FILE,
    About,
    AgentKey,
    Results,
    joined_commands,
    read_results,
    results_name,
    write_results,
)
from dropin.experiments.benchmark.running import Benchmark

__all__ = ["check_earlier", "store_results"]


def check_earlier(benchmark: Benchmark) -> dict[str, Results]:
    """Return the results that earlier calls have stored, by learner.

    Args:
        benchmark: The benchmark.

    Raises:
        InputError: If they are damaged, or of something that cannot be joined with this benchmark.
    """
    found = {}
    for learner in benchmark.names:
        directory = _directory(benchmark, learner)
        if not (directory / RESULTS_FILE).exists():
            continue
        away = f"Move {directory} away, or give another --directory."
        try:
            found[learner] = read_results(directory)
        except InputError as error:
            raise InputError(f"{error} {away}") from None
        about = found[learner].about
        if about.learner != learner:
            raise InputError(f"{directory} holds results of {about.learner}. {away}")
        trained = about.training.get("learner", benchmark.who)
        if benchmark.references and trained != benchmark.who:
            raise InputError(
                f"{directory} holds the returns of {trained} as references, and not of"
                f" {benchmark.who}. {away}"
            )
    return found


def store_results(benchmark: Benchmark, records: Sequence[Record], command: str) -> list[Path]:
    """Write the results of a benchmark's records, a directory for each learner.

    Args:
        benchmark: The benchmark.
        records: Its records.
        command: The command that made them.

    Returns:
        The directories, below `results` of the benchmark's directory.

    Raises:
        InputError: If results that are there cannot be joined with these.
    """
    earlier = check_earlier(benchmark)
    files = _agent_files(benchmark)
    written = []
    for learner in dict.fromkeys(record.learner for record in records):
        own = [record for record in records if record.learner == learner]
        agents = files.get(learner, {})
        about = _about(benchmark, learner, command, trained=bool(agents))
        if learner in earlier:
            old = earlier[learner]
            stays = _untouched(old, own)
            agents = agents | {key: path for key, path in _stored_agents(old).items()
                               if key in {_key(record) for record in stays}}  # fmt: skip
            about = replace(about, command=joined_commands(old.about.command, command))
            own += stays
        directory = _directory(benchmark, learner)
        write_results(directory, own, about, agents, replace=True)
        written.append(directory)
    return written


def _directory(benchmark: Benchmark, learner: str) -> Path:
    name = results_name(learner, benchmark.options.scale)
    return benchmark.options.directory / "results" / name


def _about(benchmark: Benchmark, learner: str, command: str, *, trained: bool) -> About:
    """Return what is said of a learner; the settings are those of its first run."""
    jobs, config = benchmark.plan.jobs, benchmark.trained_with
    config = jobs[0].config if jobs else config
    values: PlainDict = to_dict(config) if config is not None and trained else {}
    return About.here(
        learner,
        kind="dropin" if trained else "policy",
        settings=values.get("settings", {}),
        training=values,
        scale=benchmark.options.scale,
        command=command,
    )


def _key(record: Record) -> AgentKey:
    return record.task, record.team_limit, record.seed, record.checkpoint


def _agent_files(benchmark: Benchmark) -> dict[str, dict[AgentKey, Path]]:
    """Return the agents' files of all trials, by learner."""
    found: dict[str, dict[AgentKey, Path]] = {}
    for trial in benchmark.trials():
        if isinstance(trial.who, Path):
            key = (trial.task.name, trial.limit, trial.seed, trial.checkpoint)
            found.setdefault(trial.learner, {})[key] = trial.who
    return found


def _untouched(old: Results, new: Sequence[Record]) -> list[Record]:
    """Return the records of earlier calls that were not measured anew.

    Those of another version of a task that was measured now are left out.
    """
    measured, versions = {_key(record) for record in new}, {each.task: each.version for each in new}
    return [
        record
        for record in old.records
        if _key(record) not in measured
        and versions.get(record.task, record.version) == record.version
    ]


def _stored_agents(results: Results) -> dict[AgentKey, Path]:
    """Return the agents' files in a directory of results."""
    names: Mapping[AgentKey, str | None] = {
        _key(record): said["agent"]
        for record, said in zip(results.records, results.summaries, strict=True)
    }
    return {key: path for key, name in names.items()
            if name is not None and (path := results.directory / name).exists()}  # fmt: skip
