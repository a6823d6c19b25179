"""Atomic operations on memory: ATOM, ATOMG, ATOMS, RED, REDG."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sassir.asm.instruction import Instruction
from sassir.asm.operand import Operand
from sassir.emulator.access import reach_of
from sassir.emulator.batch import Batch, Step
from sassir.emulator.lanes import Array, Indices, Lanes
from sassir.emulator.memory import Space
from sassir.emulator.operands import slots, sources, words_of
from sassir.errors import SemanticsError
from sassir.isa.description import kind_of
from sassir.launch.data import bits_of
from sassir.launch.data import load as load_values
from sassir.launch.data import store as store_values

Operation = Callable[[Array, Array], Array]
"""New value of memory from the old one and the operand, elementwise."""


def _increment(old: Array, limit: Array) -> Array:
    return np.where(old >= limit, 0, old + 1).astype(old.dtype)


def _decrement(old: Array, limit: Array) -> Array:
    return np.where((old == 0) | (old > limit), limit, old - 1).astype(old.dtype)


_OPERATIONS: Mapping[str, Operation] = {
    "ADD": np.add,
    "AND": np.bitwise_and,
    "DEC": _decrement,
    "EXCH": lambda old, operand: operand,
    "INC": _increment,
    "MAX": np.maximum,
    "MIN": np.minimum,
    "OR": np.bitwise_or,
    "XOR": np.bitwise_xor,
}
_COMPARE = frozenset({"CAS", "CAST"})
_TYPES: Mapping[str, np.dtype[np.generic]] = {
    "64": np.dtype(np.uint64),
    "BF16x2": np.dtype((np.uint16, 2)),
    "F16x2": np.dtype((np.float16, 2)),
    "F32": np.dtype(np.float32),
    "F64": np.dtype(np.float64),
    "S32": np.dtype(np.int32),
    "S64": np.dtype(np.int64),
    "U64": np.dtype(np.uint64),
}
_WITHOUT_EFFECT = frozenset(
    ("32", "CTA", "E", "EF", "EL", "EN", "FTZ", "GPU", "LU", "MMIO", "POPC", "RN", "SM", "SPIN", "STRONG", "SYS", "WEAK")
)


class _Form(NamedTuple):
    """What the modifiers say."""

    operation: str
    type: str
    """A key of `_TYPES`, or `U32`."""
    flush: bool
    """Denormal singles become zero."""
    each: bool
    """POPC.INC: adds one for each lane."""

    @property
    def dtype(self) -> np.dtype[np.generic]:
        return _TYPES.get(self.type, np.dtype(np.uint32))


def atomic_step(batch: Batch, instruction: Instruction) -> Step:
    """Lanes that meet at one address go one after the other, by number. Raises SemanticsError for a form that is not known."""
    form = _form(instruction)
    width = form.dtype.itemsize
    result, flag, address, operands = _operands(instruction)
    reach = reach_of(batch, instruction, address)
    read = [sources(batch, operand.registers[0], width) for operand in operands]
    written = slots(batch, result.registers[0], width) if result is not None else []
    succeeded = batch.registers.slot(flag.registers[0]) if flag is not None else None
    cast = form.operation == "CAST"

    def run(lanes: Lanes) -> None:
        for space, places, some in reach(lanes, width, "update"):
            values = [_join(words_of(batch, group, some), form.dtype) for group in read]
            if form.each:
                values = [np.ones(len(places), form.dtype)]
            old = _update(space, places, form, values)
            swapped = bits_of(old) == bits_of(values[0]) if form.operation in _COMPARE else np.ones(len(places), np.bool_)
            words = [swapped.astype(np.uint32), np.zeros(len(places), np.uint32)] if cast else _split(old)
            for slot, word in zip(written, words, strict=False):
                batch.registers.write(slot, some.expand(word), some)
            if succeeded is not None:
                batch.registers.write(succeeded, some.expand(swapped), some)

    return run


def _form(instruction: Instruction) -> _Form:
    modifiers = instruction.modifiers
    operation = next((m for m in modifiers if m in _OPERATIONS or m in _COMPARE), None)
    types = [m for m in modifiers if m in _TYPES]
    unknown = {*modifiers} - {*types} - {operation} - _WITHOUT_EFFECT
    if operation is None or unknown or len(types) > 1:
        raise SemanticsError(f"`{instruction.text}`: this atomic operation is not emulated")
    each = "POPC" in modifiers
    return _Form("ADD" if each else operation, types[0] if types else "U32", "FTZ" in modifiers, each)


def _operands(instruction: Instruction) -> tuple[Operand | None, Operand | None, int, list[Operand]]:
    """Result, success flag, position of the address, and the operands behind it."""
    operands = instruction.operands
    kinds = [kind_of(operand) for operand in operands]
    address = kinds.index("address")
    before = {kind: operand for kind, operand in zip(kinds[:address], operands[:address], strict=True)}
    if {*kinds[address + 1 :]} - {"vector"} or {*before} - {"vector", "predicate"}:
        raise SemanticsError(f"`{instruction.text}`: these operands of an atomic operation are not known")
    flag = before.get("predicate")
    return before.get("vector"), flag if flag is not None and flag.text != "PT" else None, address, [*operands[address + 1 :]]


def _update(space: Space, places: Indices, form: _Form, operands: list[Array]) -> Array:
    """Apply the operation lane after lane; the old values. Each round does the first remaining lane of every place."""
    memory = space.data.view(form.dtype.base).reshape(-1, *form.dtype.shape)
    index = places // form.dtype.itemsize
    old = np.empty((len(index), *form.dtype.shape), form.dtype.base)
    remaining = np.arange(len(index))
    while remaining.size:
        _, first = np.unique(index[remaining], return_index=True)
        now = remaining[first]
        old[now] = memory[index[now]]
        memory[index[now]] = _apply(form, old[now], [operand[now] for operand in operands])
        remaining = np.delete(remaining, first)
    return old


def _apply(form: _Form, old: Array, operands: list[Array]) -> Array:
    if form.operation in _COMPARE:
        compare, new = operands
        return np.where(bits_of(old) == bits_of(compare), new, old)
    operation = _OPERATIONS[form.operation]
    if form.type == "BF16x2":
        return store_values(operation(load_values(old, "bf16"), load_values(operands[0], "bf16")), "bf16")
    if form.type == "F32" and form.flush:
        return _flush(operation(_flush(old), _flush(operands[0])))
    return operation(old, operands[0])


def _flush(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Denormals become zeros of their sign."""
    return np.where(np.abs(values) < np.finfo(np.float32).tiny, np.copysign(np.float32(0), values), values)


def _join(words: list[Array], dtype: np.dtype[np.generic]) -> Array:
    """Registers as elements of the type."""
    stacked = np.ascontiguousarray(np.stack(words, axis=-1), np.uint32)
    return stacked.view(dtype.base).reshape(-1, *dtype.shape)


def _split(values: Array) -> list[Array]:
    """Elements as registers."""
    words = np.ascontiguousarray(values).view(np.uint32).reshape(len(values), -1)
    return [np.ascontiguousarray(words[:, i]) for i in range(words.shape[1])]
