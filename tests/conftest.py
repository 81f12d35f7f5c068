import os
from pathlib import Path

import jax
import pytest
from hypothesis import settings

jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")

# Most of the suite's time is compilation: what was compiled once is kept, also for the processes
# that tests start.
CACHE = Path(__file__).parent.parent / ".cache" / "tests"
os.environ["DROPIN_CACHE"] = str(CACHE)
jax.config.update("jax_compilation_cache_dir", str(CACHE / "jax"))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.3)

# Compilation makes the first example slow and the others fast.
settings.register_profile("dropin", deadline=None, max_examples=25, derandomize=True)
settings.load_profile("dropin")


@pytest.fixture(params=["paper", "reference"])
def rules(request) -> str:
    return request.param
