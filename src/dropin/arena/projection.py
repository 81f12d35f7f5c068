"""A map of type vectors: their first two principal components."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

__all__ = ["Projection", "fit_projection"]

_SMALLEST = 1e-12


@dataclass(frozen=True)
class Projection:
    """A linear map from type vectors to points.

    It is fitted once and does not change while an episode goes on, so that points do not jump.
    """

    mean: Float[np.ndarray, " type"]
    basis: Float[np.ndarray, "type 2"]

    def __call__(self, vectors: Float[np.ndarray, "slot type"]) -> Float[np.ndarray, "slot 2"]:
        """Return the points of type vectors.

        Args:
            vectors: One type vector per row.
        """
        return (vectors - self.mean) @ self.basis


def fit_projection(vectors: Float[np.ndarray, "n type"]) -> Projection:
    """Fit the first two principal components of type vectors.

    The variance of the points along the first component is 1, and the scale is the same along the
    second. The largest entry of each component is positive, so that the map is the same every time.

    Args:
        vectors: The type vectors to fit it to, one per row.

    >>> map = fit_projection(np.array([[0.0, 0.0, 3.0], [2.0, 0.0, 3.0]]))
    >>> map(np.array([[0.0, 0.0, 3.0], [2.0, 0.0, 3.0]])).round(6).tolist()
    [[-1.0, 0.0], [1.0, 0.0]]
    """
    exact = vectors.astype(np.float64)
    mean = exact.mean(axis=0)
    # The covariance is small however many vectors there are: a tenth of the time of their SVD.
    variances, columns = np.linalg.eigh((exact - mean).T @ (exact - mean) / len(exact))
    spread = np.sqrt(max(variances[-1], 0.0))
    components = np.zeros((2, exact.shape[1]))
    components[: min(2, exact.shape[1])] = columns[:, :-3:-1].T
    largest = np.argmax(np.abs(components), axis=1)
    sign = np.where(np.take_along_axis(components, largest[:, None], axis=1) < 0, -1.0, 1.0)
    basis = (sign * components).T / max(spread, _SMALLEST)
    return Projection(mean.astype(np.float32), basis.astype(np.float32))
