"""The pairs that are best together: the assignment problem, by the Hungarian method."""

import numpy as np
import numpy.typing as npt

Matrix = npt.NDArray[np.float64]


def best_pairs(gains: Matrix) -> list[tuple[int, int]]:
    """Rows with columns, each at most once, so that the sum of gains is the greatest there is.

    Gains are not negative; a pair that gains nothing is no pair. Of equal sums always the same is found.
    """
    if gains.shape[0] > gains.shape[1]:
        return sorted((row, column) for column, row in best_pairs(gains.T))
    matched = _rows_of_columns(-gains)
    pairs = ((int(row), column) for column, row in enumerate(matched) if row >= 0)
    return sorted((row, column) for row, column in pairs if gains[row, column] > 0)


def _rows_of_columns(costs: Matrix) -> npt.NDArray[np.int64]:
    """For each column the row that gets it, or -1; every row gets one, at the least cost.

    Row by row, the shortest augmenting path is added, with potentials that keep reduced costs from being negative.
    """
    rows, columns = costs.shape
    row_potential, column_potential = np.zeros(rows), np.zeros(columns + 1)
    matched = np.full(columns + 1, -1, dtype=np.int64)  # the last column is where a path begins
    for row in range(rows):
        matched[columns] = row
        _augment(costs, row_potential, column_potential, matched)
    return matched[:columns]


def _augment(costs: Matrix, row_potential: Matrix, column_potential: Matrix, matched: npt.NDArray[np.int64]) -> None:
    columns = costs.shape[1]
    distance, before = np.full(columns, np.inf), np.full(columns, columns, dtype=np.int64)
    visited, here = np.zeros(columns + 1, dtype=np.bool_), columns
    while matched[here] >= 0:
        visited[here] = True
        row, is_open = matched[here], ~visited[:columns]
        reduced = costs[row] - row_potential[row] - column_potential[:columns]
        nearer = is_open & (reduced < distance)
        distance[nearer], before[nearer] = reduced[nearer], here
        there = int(np.argmin(np.where(is_open, distance, np.inf)))
        step = distance[there]
        row_potential[matched[visited]] += step
        column_potential[visited] -= step
        distance[is_open] -= step
        here = there
    while here != columns:
        matched[here] = matched[before[here]]
        here = int(before[here])
