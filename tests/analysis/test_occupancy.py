"""Occupancy equals the occupancy calculator of CUDA 13.0 (`cudaOccMaxActiveBlocksPerMultiprocessor` of its cuda_occupancy.h)."""

from __future__ import annotations

import pytest

from sassir.analysis.occupancy import MULTIPROCESSORS, occupancy, shared_partition
from sassir.encoders.library import ARCHITECTURES
from sassir.errors import SassirError

# registers, shared bytes, threads, barriers: blocks on the architectures of ORDER
CALCULATOR = """
 16      0   32  0: 16 32 16 16 24 32 32 24 32 24 24 24
 32      0  256  1:  4  8  6  6  6  8  8  6  8  6  6  6
 33      0  256  1:  4  6  6  6  6  6  6  6  6  6  6  6
 40      0  256  1:  4  6  6  6  6  6  6  6  6  6  6  6
 64      0 1024  1:  1  1  1  1  1  1  1  1  1  1  1  1
 65      0 1024  1:  0  0  0  0  0  0  0  0  0  0  0  0
 96  49152  128  4:  1  3  2  3  2  4  4  4  4  4  2  2
128  16384  256  2:  2  2  2  2  2  2  2  2  2  2  2  2
168  65536  384  1:  1  1  1  1  1  1  1  1  1  1  1  1
255      0   64  0:  4  4  4  4  4  4  4  4  4  4  4  4
255      0   96  0:  2  2  2  2  2  2  2  2  2  2  2  2
255      0  256  0:  1  1  1  1  1  1  1  1  1  1  1  1
 24      1   96 16: 10 21 16 16 16  4  4  1  4  1  1  1
 56   8192  192 16:  5  6  6  6  6  4  4  1  4  1  1  1
 72  12345  160  3:  5  5  5  5  5  5  5  5  5  5  5  5
232 100000  128  1:  0  1  1  1  1  2  2  2  2  2  1  1
 32 101376  512  1:  0  1  1  1  1  2  2  2  2  2  1  1
128      0  544  1:  0  0  0  0  0  0  0  0  0  0  0  0
 80      0  672  0:  1  1  1  1  1  1  1  1  1  1  1  1
 90  20000   33  2:  3  7  4  7  4 10 10 10 10 10  4  4
"""
ORDER = ("sm_75", "sm_80", "sm_86", "sm_87", "sm_89", "sm_90", "sm_100", "sm_101", "sm_103", "sm_110", "sm_120", "sm_121")


@pytest.mark.parametrize("line", CALCULATOR.strip().splitlines())
def test_blocks_equal_the_calculator(line: str) -> None:
    needs, blocks = line.split(":")
    registers, shared, threads, barriers = map(int, needs.split())
    found = [occupancy(arch, registers, shared, threads, barriers).blocks for arch in ORDER]
    assert found == [int(b) for b in blocks.split()]


@pytest.mark.parametrize(
    ("needs", "limits"),
    [
        ((32, 0, 256, 1), ("warps", "registers")),
        ((33, 0, 256, 1), ("registers",)),
        ((16, 0, 32, 0), ("blocks",)),
        ((96, 49152, 128, 4), ("shared memory",)),
        ((24, 0, 96, 16), ("barriers",)),
    ],
)
def test_what_the_limit_is(needs: tuple[int, int, int, int], limits: tuple[str, ...]) -> None:
    assert occupancy("sm_90", *needs).limits == limits


def test_warps_and_their_share() -> None:
    """40 registers go to a warp as 1280; 12 such warps fit into a quarter of the registers, 48 on the multiprocessor."""
    found = occupancy("sm_90a", 40, 0, 256)
    assert (found.blocks, found.warps, found.share) == (6, 48, 0.75)


def test_the_system_takes_shared_memory_of_each_block() -> None:
    assert occupancy("sm_90", 32, 227 * 1024, 128).blocks == 1
    assert occupancy("sm_90", 32, 227 * 1024 + 1, 128).blocks == 0
    assert occupancy("sm_75", 32, 64 * 1024, 128).blocks == 1


@pytest.mark.parametrize(
    ("arch", "taken", "partition"),
    [
        ("sm_90", 0, 0),
        ("sm_90", 20 * 9600, 196),
        ("sm_90", 21 * 9600, 228),
        ("sm_90", 24 * 9600, 228),
        ("sm_80", 150 << 10, 164),
        ("sm_75", 0, 32),
        ("sm_75", 33 << 10, 64),
    ],
)
def test_shared_memory_takes_the_smallest_partition_that_holds_it(arch: str, taken: int, partition: int) -> None:
    assert shared_partition(arch, taken) == partition << 10


def test_what_blocks_take_together_has_a_partition_on_every_architecture() -> None:
    for arch, sm in MULTIPROCESSORS.items():
        assert shared_partition(arch, sm.shared) == sm.shared
        assert occupancy(arch, 32, 8000, 128).shared <= sm.shared


def test_every_architecture_with_an_encoding_has_a_row() -> None:
    assert set(MULTIPROCESSORS) == set(ARCHITECTURES)


def test_what_is_refused() -> None:
    with pytest.raises(SassirError, match="the occupancy of sm_60 is not known; expected one of sm_75, "):
        occupancy("sm_60", 32, 0, 128)
    with pytest.raises(SassirError, match="a block of 0 threads"):
        occupancy("sm_90", 32, 0, 0)
