"""sass-forward-memory: loads of what is known and stores that nobody sees go, and only those."""

from __future__ import annotations

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr

from sassir.asm import INSTRUCTION_BYTES, Function, Line
from sassir.asm.parse import parse_instruction
from sassir.dialect.facts import FACTS, FactsAttr, KernelFacts, Pointer, used_facts
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.operations import KernelOp
from sassir.passes.forward_memory import ForwardMemory
from sassir.passes.virtualise import Virtualise
from sassir.translate.lift import ARCH, lift_function

START = "LDC.64 R2, c[0x0][0x210]\nLDC.64 R4, c[0x0][0x218]\nS2R R0, SR_TID.X"
"""R2 and R4 are the buffers, R0 a number that is not known."""
BUFFERS = (Pointer(0x210, 256, 0x1000), Pointer(0x218, 256, 0x1000))


def forwarded(body: str, noalias: bool = False) -> KernelOp:
    text = [*START.splitlines(), *body.strip().splitlines(), "EXIT"]
    lines = tuple([Line(parse_instruction(line), INSTRUCTION_BYTES * i) for i, line in enumerate(text)])
    made = lift_function(Function("k", None, lines, {}), {})
    made.attributes[FACTS] = FactsAttr(KernelFacts(pointers=BUFFERS, noalias=noalias))
    module = ModuleOp([made], {ARCH: StringAttr("sm_90")})
    Virtualise().apply(Context(), module)
    assert made.fixed is None
    ForwardMemory().apply(Context(), module)
    module.verify()
    return made


def accesses(kernel: KernelOp) -> list[str]:
    ops = [op for block in kernel.body.blocks for op in block.ops if isinstance(op, SassInstruction)]
    return [op.MNEMONIC for op in ops if op.MNEMONIC in ("LDG", "LDL", "LDS", "STG", "STL", "STS", "RED")]


STORE = "STG.E desc[UR4][R2.64], R0\n"
LOAD = "LDG.E R9, desc[UR4][R2.64]\nSTG.E desc[UR4][R4.64], R9"


def test_a_load_gets_what_was_stored() -> None:
    assert accesses(forwarded(STORE + LOAD)) == ["STG", "STG"]


def test_a_load_gets_what_was_loaded() -> None:
    assert accesses(forwarded("LDG.E R8, desc[UR4][R2.64]\n" + LOAD + "\nSTG.E desc[UR4][R4.64+0x4], R8")) == ["LDG", "STG", "STG"]


def test_a_zero_that_was_stored_is_no_register_until_it_is_needed() -> None:
    made = forwarded("STG.E.64 desc[UR4][R2.64], RZ\nLDG.E.64 R8, desc[UR4][R2.64]\nSTG.E.64 desc[UR4][R4.64], R8")
    assert accesses(made) == ["STG", "STG"]


def test_a_store_in_between_ends_what_is_known_unless_buffers_do_not_overlap() -> None:
    body = STORE + "STG.E desc[UR4][R4.64+0x8], R0\n" + LOAD
    without, with_fact = forwarded(body), forwarded(body, noalias=True)
    assert accesses(without) == ["STG", "STG", "LDG", "STG"]
    assert used_facts(without) == ()
    assert accesses(with_fact) == ["STG", "STG", "STG"]
    assert used_facts(with_fact) == ("noalias",)


def test_a_covered_store_goes() -> None:
    assert accesses(forwarded("STG.E desc[UR4][R2.64+0x4], R0\nSTG.E.64 desc[UR4][R2.64], R4")) == ["STG"]


def test_a_block_that_only_one_other_leads_to_goes_on_with_what_is_known() -> None:
    body = STORE + "ISETP.EQ.AND P0, PT, R0, RZ, PT\n@P0 EXIT\n" + LOAD
    assert accesses(forwarded(body)) == ["STG", "STG"]


KEPT_LOADS = {
    "after a barrier": STORE + "BAR.SYNC.DEFER_BLOCKING 0x0\n" + LOAD,
    "after what __syncwarp leaves": STORE + "NOP\n" + LOAD,
    "after an atomic operation": STORE + "RED.E.ADD.STRONG.GPU desc[UR4][R4.64], R0\n" + LOAD,
    "of a volatile word": (STORE + LOAD).replace("LDG.E ", "LDG.E.STRONG.SYS "),
    "of half of what was stored": STORE + LOAD.replace("LDG.E ", "LDG.E.U16 "),
    "of more than was stored": STORE + "LDG.E.64 R8, desc[UR4][R2.64]\nSTG.E.64 desc[UR4][R4.64], R8",
    "behind a conditional store": "ISETP.EQ.AND P0, PT, R0, RZ, PT\n@P0 STG.E desc[UR4][R2.64], R0\n" + LOAD,
    "where paths meet": "ISETP.EQ.AND P0, PT, R0, RZ, PT\n@P0 BRA .+0x20\n" + STORE + LOAD,
    "of shared memory": "STS [R0], R0\nLDS R9, [R0]\nSTG.E desc[UR4][R4.64], R9",
}


@pytest.mark.parametrize("body", KEPT_LOADS.values(), ids=KEPT_LOADS)
def test_a_load_stays(body: str) -> None:
    assert any(name in ("LDG", "LDS") for name in accesses(forwarded(body, noalias=True)))


KEPT_STORES = {
    "read in between": STORE + "LDG.E R9, desc[UR4][R4.64]\nSTG.E desc[UR4][R2.64], R9",
    "seen behind a fence": STORE + "MEMBAR.SC.GPU\n" + STORE,
    "not overwritten by all threads": "ISETP.EQ.AND P0, PT, R0, RZ, PT\n" + STORE + "@P0 STG.E desc[UR4][R2.64], R2",
    "overwritten in part": "STG.E.64 desc[UR4][R2.64], R4\n" + STORE,
    "seen by a thread that ends": STORE + "ISETP.EQ.AND P0, PT, R0, RZ, PT\n@P0 EXIT\n" + STORE,
    "volatile": STORE.replace(".E ", ".E.STRONG.SYS ") + STORE,
}


@pytest.mark.parametrize("body", KEPT_STORES.values(), ids=KEPT_STORES)
def test_a_store_stays(body: str) -> None:
    assert accesses(forwarded(body)).count("STG") == 2
