"""Facts about launches: from a launch file to the attribute that passes read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from xdsl.dialects.builtin import ModuleOp

from sassir.dialect.facts import FACTS, FactsAttr, KernelFacts, Pointer
from sassir.dialect.operations import KernelOp
from sassir.launch import Buffer, Facts, Launch, Step
from sassir.machine.constant_bank import constant_bank

WORD = 4


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
    return KernelFacts(step.block, step.grid, step.shared, tuple(words), tuple(pointers), *flags)


def _common(a: KernelFacts, b: KernelFacts) -> KernelFacts:
    sizes = {p.offset: p for p in b.pointers}
    return KernelFacts(
        a.block if a.block == b.block else None,
        a.grid if a.grid == b.grid else None,
        a.shared if a.shared == b.shared else None,
        tuple([word for word in a.words if word in b.words]),
        tuple([Pointer(p.offset, min(p.align, o.align), max(p.nbytes, o.nbytes)) for p in a.pointers if (o := sizes.get(p.offset))]),
        a.noalias and b.noalias,
        a.contract and b.contract,
        a.ftz and b.ftz,
        a.approx and b.approx,
    )


def attach_facts(module: ModuleOp, facts: Mapping[str, KernelFacts]) -> Iterable[str]:
    """Give each kernel its facts. Returns the names in `facts` that the module has no kernel for."""
    missing = set(facts)
    for op in module.body.ops:
        if isinstance(op, KernelOp) and (found := facts.get(op.function.data)) is not None:
            op.attributes[FACTS] = FactsAttr(found)
            missing.discard(op.function.data)
    return sorted(missing)
