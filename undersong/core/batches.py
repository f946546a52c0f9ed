"""Batching of a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")


def batches(items: Iterable[T], most: int, size: Callable[[T], int] | None = None) -> Iterator[list[T]]:
    """Items in lists that end once their sizes add up to ``most``; without ``size`` each counts as one."""
    batch: list[T] = []
    total = 0
    for item in items:
        batch.append(item)
        total += 1 if size is None else size(item)
        if total >= most:
            yield batch
            batch, total = [], 0
    if batch:
        yield batch


def even_batches(items: Sequence[T], most: int, size: Callable[[T], int]) -> Iterator[list[T]]:
    """The same, of about equal sizes: no small batch is left at the end."""
    total = sum(map(size, items))
    return batches(items, -(-total // max(1, total // most)), size)
