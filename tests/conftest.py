import os
from pathlib import Path

import jax
import pytest
from hypothesis import settings

# Most of the suite's time is compilation, so programs are hardly optimised here, and what one
# process has compiled the others read, those that tests start as well.
NORMAL = os.environ.get("DROPIN_TEST_XLA") == "normal"
"""Whether programs are compiled as users compile them."""
if not NORMAL:
    os.environ["XLA_FLAGS"] = (
        "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
        " --xla_cpu_use_fusion_emitters=false"
    )
# See `dropin._xla.cache`; not every process that tests start uses it.
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
for name, value in {
    "jax_compilation_cache_dir": str(Path(__file__).parent.parent / ".cache" / "tests"),
    "jax_persistent_cache_min_compile_time_secs": 0.0,
}.items():
    os.environ[name.upper()] = str(value)
    jax.config.update(name, value)

jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")

# Compilation makes the first example slow and the others fast.
settings.register_profile("dropin", deadline=None, max_examples=25, derandomize=True)
settings.load_profile("dropin")


@pytest.fixture(params=["paper", "reference"])
def rules(request) -> str:
    return request.param


LONG = (
    "test_compiled_and_eager",
    "test_docs",
    "test_env",
    "test_training_commands",
    "test_slow_update",
    "test_train_baselines",
    "test_train_fortattack",
    "test_analysis",
    "test_kill",
    "test_openness",
    "test_wolfpack_types",
    "test_lbf",
    "test_policies",
    "test_examples",
    "test_lbf_types",
    "test_fortattack_types",
    "test_joint",
    "test_plugin",
    "test_gymnasium",
    "test_loop",
    "test_fortattack",
)
"""Files that take long, the longest first: no process is left alone with one at the end."""
MOST_MEMORY = 3 * 2**30
"""Bytes of a process above which it forgets the programs it has compiled."""


def pytest_collection_modifyitems(items) -> None:
    places = {name: place for place, name in enumerate(LONG)}
    items.sort(key=lambda item: places.get(item.path.stem, len(LONG)))


@pytest.fixture(autouse=True, scope="module")
def _forget_programs():
    """Keep a process that runs many files small."""
    yield
    statm = Path("/proc/self/statm")
    pages = int(statm.read_text().split()[1]) if statm.exists() else 0
    if pages * os.sysconf("SC_PAGESIZE") > MOST_MEMORY:
        jax.clear_caches()
