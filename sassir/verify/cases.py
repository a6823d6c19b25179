"""Inputs to try a kernel with: the launches as their file states them, other random data, edge values, and buffers that are one.

Sizes and index data stay within what the launch file says: a kernel may rely on them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from itertools import combinations
from typing import NamedTuple

import numpy as np

from sassir.launch import Buffer, Launch, Step
from sassir.launch.data import STORAGE, Array, generate, is_float

AS_STATED = "as stated"
SHARE = 1 / 16
"""Of the elements of a buffer that become edge values: few enough that a sum of some does not always become NaN."""
_FIXED = frozenset({"arange", "nan", "ones", "zeros"})
"""Generators that draw nothing at random."""
ALIASES = 4
"""Most pairs of buffers of a launch that are made one."""


class Case(NamedTuple):
    """A launch with one kind of input."""

    launch: Launch
    kind: str

    def __str__(self) -> str:
        return f"launch {self.launch.name}, {self.kind}"


@dataclass(frozen=True)
class Sprinkled(Buffer):
    """A buffer of floats among which edge values are strewn: zeros, denormals, largest numbers, infinities and NaN of both signs."""

    share: float

    def initial(self) -> Array:
        """See `Buffer`."""
        content = super().initial().reshape(-1).copy()
        random = np.random.default_rng((self.seed, len(self.name)))
        chosen = random.random(content.size) < self.share
        content[chosen] = generate("edges", (), self.dtype, int(chosen.sum()), (self.seed, 1)).astype(STORAGE[self.dtype])
        return content.reshape(self.shape)


def cases(launch: Launch, noalias: bool) -> Iterator[Case]:
    """What to try, the launch as it is first. Without `noalias`, buffers that could be one are made one, too."""
    yield Case(launch, AS_STATED)
    read = [buffer for buffer in launch.buffers if buffer.generator != "poison" and buffer.length]
    if drawn := [buffer for buffer in read if buffer.generator not in _FIXED]:
        yield Case(with_buffers(launch, {b: replace(b, seed=b.seed + 1) for b in drawn}), "other random data")
    if floats := [buffer for buffer in read if is_float(buffer.dtype)]:
        yield Case(with_buffers(launch, {b: _sprinkle(b, SHARE) for b in floats}), "some edge values")
        yield Case(with_buffers(launch, {b: _sprinkle(b, 1) for b in floats}), "only edge values")
    for a, b in [] if noalias else _aliases(launch)[:ALIASES]:
        yield Case(replace(launch, steps=tuple([_passing(step, {a: b}) for step in launch.steps])), f"{a.name} is {b.name}")


def with_buffers(launch: Launch, new: Mapping[Buffer, Buffer]) -> Launch:
    """The launch with other buffers in the place of some."""
    return replace(
        launch,
        buffers=tuple([new.get(b, b) for b in launch.buffers]),
        symbols=tuple([(name, new.get(b, b)) for name, b in launch.symbols]),
        steps=tuple([_passing(step, new) for step in launch.steps]),
    )


def _passing(step: Step, new: Mapping[Buffer, Buffer]) -> Step:
    return replace(step, arguments=tuple([new.get(a, a) if isinstance(a, Buffer) else a for a in step.arguments]))


def _sprinkle(buffer: Buffer, share: float) -> Sprinkled:
    return Sprinkled(**{field.name: getattr(buffer, field.name) for field in fields(Buffer)}, share=share)


def _aliases(launch: Launch) -> list[tuple[Buffer, Buffer]]:
    """Pairs of buffers that are passed to one kernel, have one size, and of which the second is a result."""
    found = dict[tuple[Buffer, Buffer], None]()
    for step in launch.steps:
        for pair in combinations([a for a in step.arguments if isinstance(a, Buffer) and a.nbytes], 2):
            a, b = sorted(pair, key=lambda buffer: buffer.is_output)
            if b.is_output and (a.nbytes, STORAGE[a.dtype].itemsize) == (b.nbytes, STORAGE[b.dtype].itemsize):
                found[a, b] = None
    return list(found)
