"""The automaton's walk as machine code: eight lanes of the same bytes at a time, since one alone waits for memory.

LLVM, which numba comes with, makes the code in some hundredths of a second; numba itself would take half a second.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt

from undersong.jit import allowed
from undersong.scan.automaton import Automaton, Numbers, automaton

LANES = 8  # measured: four take a third longer, twelve are no faster
PAD = b"\xff"  # of no UTF-8, so that no string has it
_OLDEST = 20  # of llvmlite 0.45, the first with pointers of one kind


class LaneWalk:
    """The walk through one automaton."""

    def __init__(self, strings: Sequence[bytes]) -> None:
        self._automaton = automaton(strings)
        self._lengths = [len(string) for string in strings]

    def find(self, data: bytes) -> list[tuple[int, int]]:
        """(index of the string, start) of every occurrence, in any order."""
        if not data:
            return []
        ends, states = _walk(self._automaton, data)
        ending, first, width = self._automaton.ending, self._automaton.first, self._automaton.width
        return [
            (index, end - self._lengths[index])
            for end, state in zip(ends.tolist(), states.tolist(), strict=True)
            for index in ending[(state - first) // width]
        ]


@cache
def available() -> bool:
    """Whether a fitting LLVM is there, may be used, and makes code on this machine."""
    if not allowed() or find_spec("llvmlite") is None:
        return False
    if import_module("llvmlite.binding").llvm_version_info[0] < _OLDEST:
        return False
    try:
        _machine()
    except (OSError, RuntimeError):  # of llvmlite: another kind of processor, or no memory that may hold code
        return False
    return True


def _walk(found: Automaton, data: bytes) -> tuple[Numbers, npt.NDArray[np.uint32]]:
    """Where strings end, as the place after each, and the states there."""
    before = found.longest - 1  # bytes by which a lane begins early: a string may begin in the lane before
    step = -(-len(data) // LANES)
    padded = b"".join((PAD * before, data, PAD * (step * LANES - len(data))))
    ends = np.empty(step * LANES + LANES, dtype=np.int64)
    states = np.empty(len(ends), dtype=np.uint32)
    count = _machine()(
        padded, found.classes.ctypes.data, found.table.ctypes.data, found.first, step, before, ends.ctypes.data,
        states.ctypes.data,
    )  # fmt: skip
    return ends[:count] + 1 - before, states[:count]


@cache
def _machine() -> Any:
    """The machine code of ``_source`` as a function."""
    llvm = import_module("llvmlite.binding")
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple().create_target_machine(opt=2)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(_source()), target)
    engine.finalize_object()
    pointer, number = ctypes.c_void_p, ctypes.c_int64
    kind = ctypes.CFUNCTYPE(
        number, ctypes.c_char_p, pointer, pointer, ctypes.c_uint32, number, number, pointer, pointer
    )
    function: Any = kind(engine.get_function_address("walk"))
    function.engine = engine  # which owns the code
    return function


def _source() -> str:
    """The walk in LLVM's language.

    Each lane reads a byte, its class, and the next state. Where any of the new states ends a string, all are written
    down one after the other, and the place moves on by those that do.
    """
    lanes = range(LANES)
    most = "%n0"
    compared, told, count = [], [], "%count"
    for lane in lanes:
        if lane:
            compared.append(f"%m{lane} = call i32 @llvm.umax.i32(i32 {most}, i32 %n{lane})")
            most = f"%m{lane}"
        told.append(_TELL.format(lane=lane, count=count))
        count = f"%c{lane}"
    return _WALK.format(
        starts="\n".join(f"%o{lane} = mul i64 %step, {lane}" for lane in lanes),
        states="\n".join(f"%s{lane} = phi i32 [0, %entry], [%n{lane}, %next]" for lane in lanes),
        steps="".join(_STEP.format(lane=lane) for lane in lanes),
        compared="\n".join(compared), most=most, told="".join(told), count=count,
    )  # fmt: skip


_WALK = """
declare i32 @llvm.umax.i32(i32, i32)
define i64 @walk(ptr %data, ptr %classes, ptr %table, i32 %first, i64 %step, i64 %before, ptr %ends, ptr %states) {{
entry:
{starts}
%after = add i64 %step, %before
br label %each
each:
%at = phi i64 [0, %entry], [%further, %next]
%count = phi i64 [0, %entry], [%counted, %next]
{states}
{steps}
{compared}
%ending = icmp uge i32 {most}, %first
%inside = icmp uge i64 %at, %before
%told = and i1 %ending, %inside
br i1 %told, label %tell, label %next
tell:
{told}
br label %next
next:
%counted = phi i64 [%count, %each], [{count}, %tell]
%further = add i64 %at, 1
%more = icmp ult i64 %further, %after
br i1 %more, label %each, label %exit
exit:
ret i64 %counted
}}
"""
_STEP = """
%a{lane} = add i64 %o{lane}, %at
%p{lane} = getelementptr i8, ptr %data, i64 %a{lane}
%b{lane} = load i8, ptr %p{lane}
%w{lane} = zext i8 %b{lane} to i64
%q{lane} = getelementptr i8, ptr %classes, i64 %w{lane}
%k{lane} = load i8, ptr %q{lane}
%l{lane} = zext i8 %k{lane} to i32
%t{lane} = add i32 %s{lane}, %l{lane}
%x{lane} = zext i32 %t{lane} to i64
%r{lane} = getelementptr i32, ptr %table, i64 %x{lane}
%n{lane} = load i32, ptr %r{lane}
"""
_TELL = """
%e{lane} = getelementptr i64, ptr %ends, i64 {count}
store i64 %a{lane}, ptr %e{lane}
%f{lane} = getelementptr i32, ptr %states, i64 {count}
store i32 %n{lane}, ptr %f{lane}
%g{lane} = icmp uge i32 %n{lane}, %first
%h{lane} = zext i1 %g{lane} to i64
%c{lane} = add i64 {count}, %h{lane}
"""
