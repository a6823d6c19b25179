"""The table files, form by form."""

import pytest

from sassir.encoders import Table, table
from sassir.encoders.form import opcode_of
from sassir.encoders.library import ARCHITECTURES, CHAIN, base_architecture
from sassir.encoders.notation import parse_form, print_form
from sassir.errors import EncodingError


@pytest.fixture(params=CHAIN)
def forms(request: pytest.FixtureRequest) -> Table:
    return table(request.param)


def test_notation_is_exact(forms: Table) -> None:
    for identifier, block in forms.blocks.items():
        assert print_form(identifier, parse_form(block)) == block


def test_fields_cover_every_bit_once(forms: Table) -> None:
    """Bits 16-104 but 91: each in one number, one choice, fixed or inert."""
    for identifier in forms.blocks:
        form = forms.form(identifier).form
        bits = [b for n in form.numbers.values() for b in n.bits]
        bits += [s for c in form.choices.values() for s in c.selectors if isinstance(s, int) and s < 105]
        bits += [b for b, _ in form.fixed] + [*form.inert]
        assert sorted(bits) == [b for b in range(16, 105) if b != 91], identifier


def test_each_form_describes_its_own_example(forms: Table) -> None:
    """The example decodes to an instruction that encodes to the example, whatever other forms share the opcode."""
    for identifier in forms.blocks:
        form = forms.form(identifier).form
        assert form.opcode == opcode_of(form.example)
        instruction = forms.decode(form.example)
        assert instruction.mnemonic == form.mnemonic, identifier
        assert forms.encode(instruction) == form.example, f"{identifier}: {instruction.text}"


def test_suffixes_and_cousins_share_tables() -> None:
    assert table("sm_90a") is table("sm_90")
    assert base_architecture("sm_103a") == "sm_100"
    assert base_architecture("sm_121") == "sm_120"
    assert {*CHAIN} < {*ARCHITECTURES}


@pytest.mark.parametrize("arch", ["sm_70", "sm_35", "gfx90a", "sm_", ""])
def test_no_table_is_an_error_that_says_what_there_is(arch: str) -> None:
    with pytest.raises(EncodingError, match=r"there are tables for sm_75, .*sm_120"):
        table(arch)
