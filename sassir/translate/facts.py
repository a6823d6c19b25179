"""Facts about launches: from launches and from what is stated of kernels to the attribute that passes read."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace

from xdsl.dialects.builtin import ModuleOp

from sassir.dialect.facts import FACTS, FLAGS, FactsAttr, KernelFacts, Pointer, WordRange
from sassir.dialect.operations import KernelOp
from sassir.errors import LaunchError
from sassir.launch import Buffer, Facts, Launch, Step
from sassir.machine.constant_bank import constant_bank

WORD = 4
KnownFacts = Mapping[str, KernelFacts]
"""By kernel; of one that is not there nothing is known."""
NOTHING_KNOWN: KnownFacts = {}


def known_facts(arch: str, launch: Launch | None, stated: Facts | None, given: KnownFacts = NOTHING_KNOWN) -> KnownFacts:
    """What is known of each kernel: what `launch`, if there is one, and its file tell, and what is `given` beside.

    Raises LaunchError where these contradict each other.
    """
    return with_facts({} if launch is None else launch_facts(launch, stated or Facts(), arch), given)


def launch_facts(launch: Launch, stated: Facts, arch: str) -> dict[str, KernelFacts]:
    """What holds in every step of `launch`, by kernel: sizes, parameter values, and the facts `stated` in the launch file.

    A kernel that is launched several times gets what its steps have in common.
    """
    found: dict[str, KernelFacts] = {}
    for step in launch.steps:
        facts = _step_facts(step, stated, arch)
        known = found.get(step.kernel)
        found[step.kernel] = facts if known is None else _common(known, facts)
    return found


def _step_facts(step: Step, stated: Facts, arch: str) -> KernelFacts:
    base = constant_bank(arch).parameters
    pointers: list[Pointer] = []
    words: list[tuple[int, int]] = []
    for offset, argument in zip(step.offsets(), step.arguments, strict=False):
        if isinstance(argument, Buffer):
            pointers.append(Pointer(base + offset, stated.align, argument.nbytes))
        elif argument.stored().nbytes % WORD == 0:
            data = argument.stored().tobytes()
            words += [(base + offset + i, int.from_bytes(data[i : i + WORD], "little")) for i in range(0, len(data), WORD)]
    flags = stated.noalias, stated.contract, stated.ftz, stated.approx
    return KernelFacts(step.block, step.grid, step.shared, tuple(words), (), tuple(pointers), *flags)


def _common(a: KernelFacts, b: KernelFacts) -> KernelFacts:
    sizes = {p.offset: p for p in b.pointers}
    return KernelFacts(
        a.block if a.block == b.block else None,
        a.grid if a.grid == b.grid else None,
        a.shared if a.shared == b.shared else None,
        tuple([word for word in a.words if word in b.words]),
        (),
        tuple([Pointer(p.offset, min(p.align, o.align), _larger(p.nbytes, o.nbytes)) for p in a.pointers if (o := sizes.get(p.offset))]),
        a.noalias and b.noalias,
        a.contract and b.contract,
        a.ftz and b.ftz,
        a.approx and b.approx,
    )


def _larger(a: int | None, b: int | None) -> int | None:
    """None, which is not known, is larger than any number."""
    return None if a is None or b is None else max(a, b)


def with_facts(known: KnownFacts, more: KnownFacts) -> KnownFacts:
    """Both what is `known` and `more`. Raises LaunchError where they contradict each other, with the kernel and the fact."""
    return {**known, **{name: _joined(known.get(name, KernelFacts()), facts, name) for name, facts in more.items()}}


def _joined(a: KernelFacts, b: KernelFacts, kernel: str) -> KernelFacts:
    """The facts that hold where both do."""
    for name in ("block", "grid", "shared"):
        one, other = getattr(a, name), getattr(b, name)
        if one is not None and other is not None and one != other:
            raise LaunchError(f"kernel {kernel}: {name} is said to be {one}, and {other}")
    words, ranges = dict(b.words), list[WordRange]()
    for offset in sorted({place for facts in (a, b) for place, *_ in (*facts.words, *facts.ranges)}):
        ends = [known for facts in (a, b) if (known := facts.word(offset)) is not None]
        low, high = max([known.low for known in ends]), min([known.high for known in ends])
        if low > high:
            raise LaunchError(f"kernel {kernel}: word {offset:#x} is said to be in {', and in '.join(map(str, ends))}")
        if offset not in words and offset not in dict(a.words):
            ranges.append(WordRange(offset, low, high))
    others = {p.offset: p for p in b.pointers}
    pointers = [_same_pointer(p, others.pop(p.offset, p)) for p in a.pointers] + [*others.values()]
    return KernelFacts(
        a.block or b.block,
        a.grid or b.grid,
        b.shared if a.shared is None else a.shared,
        tuple((dict(a.words) | words).items()),
        tuple(ranges),
        tuple(sorted(pointers)),
        *[getattr(a, flag) or getattr(b, flag) for flag in FLAGS],
    )


def _same_pointer(a: Pointer, b: Pointer) -> Pointer:
    sizes = [p.nbytes for p in (a, b) if p.nbytes is not None]
    return Pointer(a.offset, math.lcm(a.align, b.align), min(sizes, default=None))


def stated_with(stated: Facts, launches: Iterable[Launch], given: KnownFacts, arch: str) -> Facts:
    """What holds in all `launches` of a file where `given` does as well: what is given of each kernel that they start."""
    known = [facts for launch in launches for facts in launch_facts(launch, stated, arch).items()]
    added = {flag: bool(known) and all(getattr(given.get(kernel, KernelFacts()), flag) for kernel, _ in known) for flag in FLAGS}
    aligns: list[int] = []
    for kernel, facts in known:
        more = {p.offset: p.align for p in given.get(kernel, KernelFacts()).pointers}
        aligns += [math.lcm(p.align, more.get(p.offset, 1)) for p in facts.pointers]
    flags = {flag: getattr(stated, flag) or added[flag] for flag in FLAGS}
    return replace(stated, align=math.gcd(*aligns) or stated.align, **flags)


def attach_facts(module: ModuleOp, facts: KnownFacts) -> Iterable[str]:
    """Give each kernel its facts. Returns the names in `facts` that the module has no kernel for."""
    missing = set(facts)
    for op in module.body.ops:
        if isinstance(op, KernelOp) and (found := facts.get(op.function.data)) is not None:
            op.attributes[FACTS] = FactsAttr(found)
            missing.discard(op.function.data)
    return sorted(missing)
