import numpy as np

from dropin.arena.projection import fit_projection


def test_the_map_keeps_the_two_directions_of_most_variance():
    random = np.random.default_rng(0)
    directions, _ = np.linalg.qr(random.normal(size=(7, 7)))
    coordinates = random.normal(size=(500, 7)) * [5, 2, 0.1, 0.1, 0.1, 0.1, 0.1]
    vectors = (coordinates @ directions.T + 3).astype(np.float32)
    points = fit_projection(vectors)(vectors)
    for axis in range(2):
        correlation = np.corrcoef(points[:, axis], coordinates[:, axis])[0, 1]
        assert abs(correlation) > 0.99
    np.testing.assert_allclose(points.mean(axis=0), 0, atol=1e-4)
    np.testing.assert_allclose(points.std(axis=0), [1, 0.4], atol=0.05)


def test_the_map_does_not_depend_on_signs_or_order():
    random = np.random.default_rng(1)
    vectors = random.normal(size=(50, 4)) * [4, 2, 1, 1]
    points, again = fit_projection(vectors), fit_projection(vectors[::-1])
    np.testing.assert_allclose(points.basis, again.basis, atol=1e-5)
    rows = np.argmax(np.abs(points.basis), axis=0)
    assert (points.basis[rows, [0, 1]] > 0).all()


def test_vectors_without_variance_are_one_point():
    vectors = np.ones((3, 4), np.float32)
    assert fit_projection(vectors)(vectors).tolist() == [[0, 0]] * 3
    one = np.array([[0.0], [2.0]], np.float32)
    assert fit_projection(one)(one).tolist() == [[-1, 0], [1, 0]]
