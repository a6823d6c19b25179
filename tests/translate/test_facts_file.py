"""Facts without a launch: the file of facts, facts given twice, and facts beside a launch file."""

from __future__ import annotations

from pathlib import Path

import pytest

from sassir.cubin.cubin import Cubin
from sassir.cubin.summary import summarise
from sassir.dialect.facts import KernelFacts, Pointer, WordRange
from sassir.errors import LaunchError
from sassir.launch import Facts, read_launch_file
from sassir.translate.cubin import read_module
from sassir.translate.facts import known_facts, launch_facts, stated_with, with_facts
from sassir.translate.facts_file import facts_from, kernels_of, read_facts_file, stated_facts

CUBINS = Path(__file__).parents[1] / "cubins"
DATA = (CUBINS / "facts.sm_90.cubin").read_bytes()
KERNELS = {kernel.name: kernel.parameters for kernel in summarise(Cubin.read(DATA)).kernels}
FILE = read_launch_file(CUBINS / "facts.toml")
COMPLETE = """
["*"]
noalias = true

[strided]
block = 256
grid = [4]
shared = 0
align = 16
contract = true
parameters = { 0 = {}, 1 = { align = 256, bytes = 4096 }, 2 = { min = 0, max = 100 }, 3 = { min = -1, max = 4096 } }

[low_byte]
parameters = { 0 = { align = 4 }, 1 = -2 }

[clipped]
parameters.1 = 1.5
"""


def read(folder: Path, text: str) -> dict[str, KernelFacts]:
    path = folder / "facts.toml"
    path.write_text(text)
    return {**read_facts_file(path, KERNELS, "sm_90")}


def test_offsets_come_from_the_parameters_of_the_cubin(tmp_path: Path) -> None:
    assert read(tmp_path, COMPLETE) == {
        "strided": KernelFacts(
            block=(256, 1, 1),
            grid=(4, 1, 1),
            shared=0,
            words=((0x224, 0),),
            ranges=(WordRange(0x220, 0, 100), WordRange(0x228, -1, 4096)),
            pointers=(Pointer(0x210, 16), Pointer(0x218, 256, 4096)),
            noalias=True,
            contract=True,
        ),
        "low_byte": KernelFacts(words=((0x218, 0xFFFFFFFE),), pointers=(Pointer(0x210, 4),), noalias=True),
        "clipped": KernelFacts(words=((0x218, 0x3FC00000),), noalias=True),
    }


def test_a_number_of_8_bytes_is_two_words(tmp_path: Path) -> None:
    whole, real = [read(tmp_path, f"[strided]\nparameters.2 = {value}")["strided"].words for value in ("-1", "1.0")]
    assert whole == ((0x220, 0xFFFFFFFF), (0x224, 0xFFFFFFFF))
    assert real == ((0x220, 0), (0x224, 0x3FF00000))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[stridet]", "there is no kernel 'stridet'; there are "),
        ("[strided]\nblok = 1", "strided: unknown key 'blok'; known: align, approx, block, "),
        ("[strided]\nblock = [32, 32, 2]", "strided: block: 2048 threads"),
        ("[strided]\nnoalias = 1", "strided: noalias: 1 is neither true nor false"),
        ("[strided]\nalign = 16", "strided: align: no parameter is said to be a pointer"),
        ("[strided]\nparameters.4 = 1", "strided: parameters.4: there is no such parameter; the kernel has parameters 0 to 3"),
        ("[strided]\nparameters.3 = 4294967296", "strided: parameters.3: 4294967296 does not fit into its 4 bytes"),
        ("[strided]\nparameters.3 = 1e39", "strided: parameters.3: 1e+39 does not fit into its 4 bytes"),
        ("[strided]\nparameters.3 = true", "strided: parameters.3: True is no number, no range"),
        ("[strided]\nparameters.3 = { min = 1 }", "strided: parameters.3: the key 'max' is missing"),
        (
            "[strided]\nparameters.3 = { min = 2, max = 1 }",
            "strided: parameters.3: from 2 to 1 is no range of whole numbers between -2147483648",
        ),
        ("[strided]\nparameters.3 = { min = 0.5, max = 1 }", "strided: parameters.3: from 0.5 to 1 is no range"),
        (
            "[strided]\nparameters.2 = { min = -1, max = 1 }",
            "strided: parameters.2: from -1 to 1 is no range of whole numbers between 0 and",
        ),
        ("[strided]\nparameters.3 = { align = 4 }", "strided: parameters.3: it has 4 bytes; a pointer has 8"),
        ("[strided]\nparameters.0 = { align = 0 }", "strided: parameters.0: align: an address cannot be a multiple of 0 bytes"),
        ("[strided]\nparameters.0 = { size = 1 }", "strided: parameters.0: unknown key 'size'; known: align, bytes"),
        ("[low_byte]\nparameters.2 = 1", "low_byte: parameters.2: it has 2 bytes; a number has 4 or 8"),
        ("[low_byte]\nparameters.2 = { min = 0, max = 1 }", "low_byte: parameters.2: it has 2 bytes; a number that has a range has 4 or 8"),
        ('["*"]\nparameters.3 = 1', "*: "),
        ('["*"]\nblock = 1\n[strided]\nblock = 2', "kernel strided: block is said to be (1, 1, 1), and (2, 1, 1)"),
        ("strided = 1", "strided: expected a table, found 1"),
        ("[strided", "cannot read the file of facts"),
    ],
)
def test_what_is_wrong_is_one_line(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(LaunchError) as error:
        read(tmp_path, text)
    assert str(error.value).startswith(f"{tmp_path / 'facts.toml'}: {problem}")
    assert len(str(error.value).splitlines()) == 1


def test_text_is_about_every_kernel_and_files_are_known_by_their_ending(tmp_path: Path) -> None:
    (tmp_path / "facts.toml").write_text("[clipped]\nblock = 32")
    found = stated_facts([str(tmp_path / "facts.toml"), "shared = 0"], KERNELS, "sm_90")
    assert found == {name: KernelFacts(shared=0, block=(32, 1, 1) if name == "clipped" else None) for name in KERNELS}


def test_a_module_knows_the_parameters_of_its_cubin() -> None:
    assert kernels_of(read_module(DATA)) == KERNELS


def test_facts_of_a_launch_are_those_that_optimize_takes() -> None:
    path = str(CUBINS / "facts.toml")
    assert facts_from(path, KERNELS, "sm_90") == launch_facts(FILE.launch("least"), FILE.facts, "sm_90")
    assert facts_from(f"{path}:most", KERNELS, "sm_90") == launch_facts(FILE.launch("most"), FILE.facts, "sm_90")
    with pytest.raises(LaunchError, match="there is no kernel 'strided'; there are other"):
        facts_from(path, {"other": ()}, "sm_90")


def test_two_facts_about_one_thing_are_one() -> None:
    a = KernelFacts(words=((0x210, 5),), ranges=(WordRange(0x214, 1, 9),), pointers=(Pointer(0x218, 4, 64), Pointer(0x220, 2)))
    b = KernelFacts(ranges=(WordRange(0x210, 1, 9), WordRange(0x214, 5, 20)), pointers=(Pointer(0x218, 6),), ftz=True)
    expected = KernelFacts(
        words=((0x210, 5),), ranges=(WordRange(0x214, 5, 9),), pointers=(Pointer(0x218, 12, 64), Pointer(0x220, 2)), ftz=True
    )
    assert with_facts({"k": a}, {"k": b}) == with_facts({"k": b}, {"k": a}) == {"k": expected}
    assert with_facts({"k": a}, {"l": b}) == {"k": a, "l": b}


@pytest.mark.parametrize(
    ("a", "b", "problem"),
    [
        (KernelFacts(grid=(1, 1, 1)), KernelFacts(grid=(2, 1, 1)), r"grid is said to be \(1, 1, 1\), and \(2, 1, 1\)"),
        (KernelFacts(shared=0), KernelFacts(shared=4), "shared is said to be 0, and 4"),
        (KernelFacts(words=((0x210, 0xFFFFFFFF),)), KernelFacts(words=((0x210, 1),)), r"in \[-1, -1\], and in \[1, 1\]"),
        (KernelFacts(words=((0x210, 0xFFFFFFFF),)), KernelFacts(ranges=(WordRange(0x210, 0, 9),)), r"in \[-1, -1\], and in \[0, 9\]"),
        (KernelFacts(ranges=(WordRange(0x210, 10, 11),)), KernelFacts(ranges=(WordRange(0x210, 0, 9),)), r"in \[10, 11\], and in \[0, 9\]"),
    ],
)
def test_facts_that_contradict_each_other_are_refused(a: KernelFacts, b: KernelFacts, problem: str) -> None:
    with pytest.raises(LaunchError, match=f"kernel k: .*{problem}"):
        with_facts({"k": a}, {"k": b})


def test_facts_hold_beside_those_of_a_launch() -> None:
    given = {"strided": KernelFacts(ranges=(WordRange(0x228, 0, 5000),), noalias=True)}
    found = known_facts("sm_90", FILE.launch("some"), FILE.facts, given)["strided"]
    assert found == launch_facts(FILE.launch("some"), Facts(noalias=True), "sm_90")["strided"]
    assert known_facts("sm_90", None, None, given) == given
    with pytest.raises(LaunchError, match=r"word 0x228 is said to be in \[3000, 3000\], and in \[0, 5\]"):
        known_facts("sm_90", FILE.launch("some"), FILE.facts, {"strided": KernelFacts(ranges=(WordRange(0x228, 0, 5),))})


def test_what_is_given_of_all_kernels_holds_in_all_launches() -> None:
    aligned = {"strided": KernelFacts(noalias=True, pointers=(Pointer(0x210, 16), Pointer(0x218, 64)))}
    launches, both = [*FILE.launches.values()], {**aligned, "clipped": KernelFacts(noalias=True, pointers=(Pointer(0x210, 32),))}
    assert stated_with(Facts(), launches, both, "sm_90") == Facts(noalias=True, align=16)
    assert stated_with(Facts(align=8), launches, aligned, "sm_90") == Facts(align=8)
    assert stated_with(Facts(contract=True, align=4), launches, {}, "sm_90") == Facts(contract=True, align=4)
