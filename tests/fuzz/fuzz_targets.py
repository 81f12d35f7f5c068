"""Everything that Dropin reads from files, pages and command lines: a small function each.

A target is given the bytes of an input and a path in a directory of its own. It reads them in the
way in which the commands do, and does with the result what the commands do first.
"""

import fuzz_arena_targets  # noqa: F401 - each of these adds its targets
import fuzz_array_targets  # noqa: F401
import fuzz_benchmark_targets  # noqa: F401
import fuzz_run_targets  # noqa: F401
import fuzz_team_targets  # noqa: F401
from fuzz_table import CORPUS, TARGETS

__all__ = ["CORPUS", "TARGETS"]
