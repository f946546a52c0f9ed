"""Batches end once they are large enough; even ones leave no small one at the end."""

from __future__ import annotations

import pytest

from undersong.core.batches import batches, even_batches


def test_a_batch_ends_with_the_item_that_fills_it() -> None:
    assert list(batches([3, 3, 3, 9, 1], 6, int)) == [[3, 3], [3, 9], [1]]
    assert list(batches("abcde", 2)) == [["a", "b"], ["c", "d"], ["e"]]


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ([10] * 21, [7, 7, 7]),  # 210 in lots of at most 60 would leave 30
        ([10] * 5, [5]),
        ([500, 10], [1, 1]),
        ([], []),
    ],
)
def test_even_batches_are_about_as_large_as_one_another(items: list[int], expected: list[int]) -> None:
    assert [len(batch) for batch in even_batches(items, 60, int)] == expected
    assert [each for batch in even_batches(items, 60, int) for each in batch] == items
