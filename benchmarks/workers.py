"""What the benchmarks share: processes that measure in turns, random play, and medians."""

import os
import resource
import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any


class Worker:
    """A script in a process of its own, which measures when it is asked to.

    The script is called with `--serve` and the arguments. It prints a line of numbers, or an empty
    one, when it is ready; then, for every line SECONDS on its standard input, a line of results.

    Args:
        script: The file.
        arguments: What follows `--serve`.
        cores: The cores that the process may use; all of them by default.
        environment: Environment variables that are added, or taken away if they are None.
    """

    def __init__(
        self,
        script: str,
        arguments: Sequence[str],
        cores: Sequence[int] = (),
        environment: Mapping[str, str | None] | None = None,
    ):
        pinned = ["taskset", "-c", ",".join(map(str, cores))] if cores else []
        variables = {**os.environ, "JAX_PLATFORMS": "cpu", **(environment or {})}
        self._process = subprocess.Popen(
            [*pinned, sys.executable, script, "--serve", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={name: value for name, value in variables.items() if value is not None},
        )
        self.ready = self.hear()
        """What the script printed first."""

    def hear(self) -> list[float]:
        """Return the numbers of the next line that the script prints."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit("A worker ended; see above.")
        return [float(word) for word in line.split()]

    def ask(self, seconds: float) -> None:
        """Let the script measure for about this time."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{seconds}\n")
        self._process.stdin.flush()

    def measure(self, seconds: float) -> list[float]:
        """Let the script measure, and return its results."""
        self.ask(seconds)
        return self.hear()

    def close(self) -> None:
        """Let the process end by itself."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def random_play(env: Any, num_envs: int, length: int) -> Callable[[Any, Any], Any]:
    """Return a function that takes random actions in many environments.

    Args:
        env: The environment.
        num_envs: Number of parallel environments.
        length: Steps of each environment.

    Returns:
        `(states, key) -> (states, key, sum of the learner's rewards)`, not compiled.
    """
    import jax

    def play(states: Any, key: Any) -> Any:
        key, acting, stepping = jax.random.split(key, 3)
        actions = jax.random.randint(acting, (length, num_envs), 0, len(env.game.actions))
        keys = jax.random.split(stepping, (length, num_envs))

        def step(states: Any, given: Any) -> Any:
            states, time_step = jax.vmap(env.step)(given[0], states, given[1])
            return states, time_step.reward.sum()

        states, rewards = jax.lax.scan(step, states, (keys, actions))
        return states, key, rewards.sum()

    return play


def memory_mib() -> tuple[float, float]:
    """Return the memory that this process holds now, and the most that it has ever held."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    held = [float(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS")]
    return held[0] if held else peak, peak


def spread(values: Sequence[float], form: str = "{:.2f}") -> str:
    """Return the median, the least and the greatest value as text."""
    middle, least, most = statistics.median(values), min(values), max(values)
    return f"{form.format(middle)} ({form.format(least)} to {form.format(most)})"
