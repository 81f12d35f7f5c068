import jax
import pytest
from hypothesis import settings

jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")

# Compilation makes the first example slow and the others fast.
settings.register_profile("dropin", deadline=None, max_examples=25, derandomize=True)
settings.load_profile("dropin")


@pytest.fixture(params=["paper", "reference"])
def rules(request) -> str:
    return request.param
