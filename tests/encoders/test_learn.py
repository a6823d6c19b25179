"""The miner recovers a form from the texts of its words alone."""

from random import Random

import pytest

from sassir.asm.control import Control
from sassir.encoders import table
from sassir.encoders.form import opcode_of
from sassir.encoders.mining.experiment import Answer, neutral
from sassir.encoders.mining.learn import Learner
from sassir.encoders.mining.text import split_guard, tokenize, without_payload
from sassir.encoders.table import CompiledForm


def learned(form: CompiledForm, seed: int = 1) -> CompiledForm:
    """Let a learner question `form` in place of nvdisasm, starting from its example."""

    def answer(word: int, address: int) -> Answer | None:
        if opcode_of(word) != form.form.opcode or word & form.fixed_mask != form.fixed_value:
            return None
        instruction = form.decode(word, Control(), word)
        if instruction is None:
            return None
        guard, body = split_guard(instruction._replace(extra=()).text)
        tokens = tokenize(without_payload(body))
        return Answer(guard, tuple(f"{address + int(t[1:], 16):#x}" if t.startswith((".+0x", ".-0x")) else t for t in tokens), address)

    learner = Learner([neutral(form.form.example)], 63, Random(seed))
    run = learner.run()
    question = next(run)
    try:
        while True:
            question = run.send([answer(word, 16 * i) for i, word in enumerate(question)])
    except StopIteration as done:
        assert learner.problems == []
        return CompiledForm(done.value)


@pytest.mark.parametrize("mnemonic", ["FFMA", "IADD3", "ISETP", "LDG", "LOP3", "BRA", "HFMA2", "MOV", "SHF", "S2R", "SEL"])
def test_the_learned_form_decodes_like_the_one_that_answered(mnemonic: str) -> None:
    coder = table("sm_90")
    identifier = next(i for i in coder.blocks if i.startswith(f"{mnemonic}."))
    form = coder.form(identifier)
    again = learned(form)
    rng = Random(7)
    for _ in range(300):
        word = form.form.example
        for bit in rng.sample([b for b in range(16, 105) if b != 91], rng.choice((1, 3, 12))):
            word ^= 1 << bit
        if word & form.fixed_mask == form.fixed_value:
            ours, theirs = again.decode(word, Control(), word), form.decode(word, Control(), word)
            if theirs is not None:  # of a word that was refused, nothing can be learned
                assert ours is not None, f"{word:#x}"
                assert ours._replace(extra=()).text == theirs._replace(extra=()).text, f"{word:#x}"
