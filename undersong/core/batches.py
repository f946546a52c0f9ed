"""Batching of a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
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
