"""Records as Arrow columns and back, without a loss: the type of a column follows from that of its field.

text, numbers → themselves; times → microseconds UTC; tuples → lists; mappings → maps; records and pairs → structs;
values of any JSON → their JSON as text. A field that was not set (``UNSET``) and None are null.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from types import UnionType
from typing import Any, Literal, Protocol, Union, get_args, get_origin, get_type_hints

import msgspec
import pyarrow as pa

from undersong.rows.binary import from_microseconds, microseconds

TIME = pa.timestamp("us", tz="UTC")
_PLAIN: dict[Any, pa.DataType] = {
    str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_(), bytes: pa.binary()
}  # fmt: skip
_NOTHING = (type(None), msgspec.UnsetType)
_STARTS_AT_ZERO = pa.array([0], pa.int32())


class ArrowColumn(Protocol):
    """How the values of one type stand in a column."""

    type: pa.DataType

    def array(self, values: Sequence[Any]) -> pa.Array:
        """The column of these values."""
        ...

    def values(self, array: pa.Array) -> list[Any]:
        """The values of a column, or of one of an equal kind that another program made."""
        ...


@cache
def column_of(annotation: Any) -> ArrowColumn:
    """The column of a field's type; raises TypeError for a type that no record has."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if annotation in _PLAIN:
        return _Plain(_PLAIN[annotation])
    if origin in (Union, UnionType):
        return _optional([each for each in arguments if each not in _NOTHING], msgspec.UnsetType in arguments)
    if origin is Literal:
        return _Plain(pa.string())
    if origin is tuple and arguments[-1] is Ellipsis:
        return _Lists(column_of(arguments[0]))
    if origin is tuple:
        return _Structs(tuple, {f"_{place}": column_of(each) for place, each in enumerate(arguments, 1)})
    if origin is dict:
        return _Maps(column_of(arguments[0]), column_of(arguments[1]))
    return _other(annotation)


def _optional(kinds: list[Any], may_be_unset: bool) -> ArrowColumn:
    if len(kinds) != 1:
        raise TypeError(f"no column for either of {kinds}")
    column = column_of(kinds[0])
    return _Unset(column) if may_be_unset else column


def _other(annotation: Any) -> ArrowColumn:
    if annotation is Any:
        return _Json()
    if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
        return record_columns(annotation)
    if getattr(annotation, "__name__", "") == "datetime":
        return _Moments()
    raise TypeError(f"no column for {annotation}")


@cache
def record_columns(kind: type[msgspec.Struct]) -> _Structs:
    """The columns of a record, one for each of its fields."""
    hints = get_type_hints(kind)
    return _Structs(kind, {name: column_of(hints[name]) for name in kind.__struct_fields__})


class _Plain:
    def __init__(self, kind: pa.DataType) -> None:
        self.type = kind

    def array(self, values: Sequence[Any]) -> pa.Array:
        return pa.array(values, self.type)

    def values(self, array: pa.Array) -> list[Any]:
        values: list[Any] = array.to_pylist()
        return values


class _Unset:
    """A column in which null stands for a field that was not set."""

    def __init__(self, column: ArrowColumn) -> None:
        self.type, self._column = column.type, column

    def array(self, values: Sequence[Any]) -> pa.Array:
        return self._column.array([None if each is msgspec.UNSET else each for each in values])

    def values(self, array: pa.Array) -> list[Any]:
        return [msgspec.UNSET if each is None else each for each in self._column.values(array)]


class _Moments:
    type = TIME

    def array(self, values: Sequence[Any]) -> pa.Array:
        whole = [None if each is None else microseconds(each) for each in values]
        return pa.array(whole, pa.int64()).cast(TIME)

    def values(self, array: pa.Array) -> list[Any]:
        kind = pa.timestamp("us", tz=array.type.tz)
        return [from_microseconds(each) for each in array.cast(kind, safe=False).cast(pa.int64()).to_pylist()]


class _Json:
    type = pa.string()

    def array(self, values: Sequence[Any]) -> pa.Array:
        return pa.array([None if each is None else msgspec.json.encode(each).decode() for each in values], self.type)

    def values(self, array: pa.Array) -> list[Any]:
        return [None if each is None else msgspec.json.decode(each) for each in array.to_pylist()]


class _Lists:
    def __init__(self, item: ArrowColumn) -> None:
        self.type, self._item = pa.list_(item.type), item

    def array(self, values: Sequence[Any]) -> pa.Array:
        flat = [each for own in values if own for each in own]
        return pa.ListArray.from_arrays(_offsets(values), self._item.array(flat), type=self.type, mask=_mask(values))

    def values(self, array: pa.Array) -> list[Any]:
        bounds = array.offsets.to_pylist()
        first = bounds[0] if bounds else 0
        items = self._item.values(array.values.slice(first, (bounds[-1] if bounds else 0) - first))
        parts = [tuple(items[start - first : end - first]) for start, end in pairwise(bounds)]
        return _with_nulls(array, parts)


class _Maps:
    def __init__(self, key: ArrowColumn, value: ArrowColumn) -> None:
        self.type, self._key, self._value = pa.map_(key.type, value.type), key, value

    def array(self, values: Sequence[Any]) -> pa.Array:
        keys = self._key.array([key for own in values if own for key in own])
        items = self._value.array([value for own in values if own for value in own.values()])
        return pa.MapArray.from_arrays(_offsets(values), keys, items, type=self.type, mask=_mask(values))

    def values(self, array: pa.Array) -> list[Any]:
        bounds = array.offsets.to_pylist()
        first = bounds[0] if bounds else 0
        size = (bounds[-1] if bounds else 0) - first
        keys = self._key.values(array.keys.slice(first, size))
        items = self._value.values(array.items.slice(first, size))
        parts = [
            dict(zip(keys[start - first : end - first], items[start - first : end - first], strict=True))
            for start, end in pairwise(bounds)
        ]
        return _with_nulls(array, parts)


class _Structs:
    """Records of a kind, or pairs (``tuple``), as a struct of the columns of their parts."""

    def __init__(self, kind: type, columns: dict[str, ArrowColumn]) -> None:
        self.kind, self.columns = kind, columns
        self.fields = [pa.field(name, column.type) for name, column in columns.items()]
        self.type = pa.struct(self.fields)

    def array(self, values: Sequence[Any]) -> pa.Array:
        nothing = (None,) * len(self.columns)
        records = [nothing if each is None else self._parts(each) for each in values]
        parts: Sequence[Sequence[Any]] = list(zip(*records, strict=True)) or [()] * len(self.columns)
        arrays = [column.array(own) for column, own in zip(self.columns.values(), parts, strict=True)]
        return pa.StructArray.from_arrays(arrays, fields=self.fields, mask=_mask(values))

    def values(self, array: pa.Array) -> list[Any]:
        columns = {array.type.field(place).name: each for place, each in enumerate(array.flatten())}
        present = array.is_valid().to_pylist()
        return self.records(columns, len(array), present)

    def records(self, columns: dict[str, pa.Array], size: int, present: Sequence[bool] = ()) -> list[Any]:
        """The records of some of their columns: a column that is not there leaves its field as it is by default.

        Where ``present`` is False there is None.
        """
        names = [name for name in self.columns if name in columns]
        parts = [self.columns[name].values(columns[name]) for name in names]
        tuples = zip(*parts, strict=True) if parts else iter([()] * size)
        if self.kind is tuple:
            made: list[Any] = list(tuples)
        elif len(names) == len(self.columns) and not present:
            made = [self.kind(**dict(zip(names, own, strict=True))) for own in tuples]
        else:
            made = [
                self.kind(**dict(zip(names, own, strict=True))) if not present or present[place] else None
                for place, own in enumerate(tuples)
            ]
        return [each if present[place] else None for place, each in enumerate(made)] if present else made

    def _parts(self, record: Any) -> Sequence[Any]:
        return record if self.kind is tuple else [getattr(record, name) for name in self.columns]


def _offsets(values: Sequence[Any]) -> pa.Array:
    sizes = pa.array([len(each) if each else 0 for each in values], pa.int32())
    ends = pa.compute.cumulative_sum(sizes)
    return pa.concat_arrays([_STARTS_AT_ZERO, ends])


def _mask(values: Sequence[Any]) -> pa.Array | None:
    """Which values are None; None where none is."""
    missing = [each is None for each in values]
    return pa.array(missing, pa.bool_()) if any(missing) else None


def _with_nulls(array: pa.Array, values: list[Any]) -> list[Any]:
    if not array.null_count:
        return values
    return [each if is_there else None for each, is_there in zip(values, array.is_valid().to_pylist(), strict=True)]
