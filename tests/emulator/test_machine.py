"""Thread numbers, memory spaces, variables, atomics, barriers and asynchronous copies: small kernels with known results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

Run = Callable[..., list[NDArray[Any]]]

both = pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
hopper = pytest.mark.parametrize("arch", ["sm_90", "sm_100"])


def random(count: int, dtype: Any = np.int32, most: int = 8) -> NDArray[Any]:
    return np.random.default_rng(1).integers(0, most, count).astype(dtype)


@both
def test_threads_and_blocks_have_three_numbers(run: Run, arch: str) -> None:
    grid, block = (3, 2, 2), (4, 3, 2)
    (out,) = run(f"emulated.{arch}.cubin", "dimensions", np.zeros(12 * 24, np.int32), grid=grid, block=block)
    bz, by, bx, z, y, x = np.unravel_index(np.arange(out.size), (*grid[::-1], *block[::-1]))
    assert (out == x + 10 * y + 100 * z + 1000 * bx + 10000 * by + 100000 * bz).all()


@both
@pytest.mark.parametrize("which", [0, 1, 2])
def test_a_generic_pointer_reaches_global_shared_and_local_memory(run: Run, arch: str, which: int) -> None:
    data = np.arange(8, dtype=np.int32)
    _, out = run(f"emulated.{arch}.cubin", "windows", data, np.zeros(33, np.int32), which)
    base = (0, 200, 100)[which]
    assert (out[:32] == base + np.arange(32) % 8).all()
    assert out[32] == 1 << which


@both
@pytest.mark.parametrize(("i", "expected"), [(0, 5), (1, 9), (2, -7), (3, 44), (4, 2), (5, 10), (6, 0)])
def test_variables_constants_and_jump_tables(run: Run, arch: str, i: int, expected: int) -> None:
    (out,) = run(f"emulated.{arch}.cubin", "variables", np.array([9, 3, 0, 0, 4], np.int32), i, block=(1, 1, 1))
    assert out[0] == expected
    assert out[1] == 0  # what a constant holds that nobody filled


@both
def test_a_kernel_may_have_no_parameters(run: Run, arch: str) -> None:
    assert run(f"emulated.{arch}.cubin", "without_parameters") == []


@both
def test_atomic_operations_on_one_place_follow_each_other(run: Run, arch: str) -> None:
    threads = 96
    t = np.arange(threads)
    start = np.zeros(256, np.int32)
    start[34] = -1
    ints, floats, doubles, longs = run(
        f"emulated.{arch}.cubin", "atomics", start, np.zeros(64, np.float32), np.zeros(4, np.float64), np.zeros(8, np.uint64),
        block=(threads, 1, 1),
    )  # fmt: skip
    assert ints[:4].tolist() == [t[t % 4 == i].sum() for i in range(4)]
    assert ints[4:8].tolist() == [92, 93, 94, 95]
    assert ints[8] == -95
    assert ints[9] == np.bitwise_xor.reduce(t)
    assert ints[10] == threads % 7  # wraps after 6
    assert ints[11] == 17
    assert ints[33] == threads
    assert ints[34] == -1 & ~int(np.bitwise_or.reduce(t))
    assert (ints[64 : 64 + threads] == 1).all()  # every number was handed out once
    assert floats[:2].tolist() == [threads / 4] * 2
    assert floats[33] == threads / 4
    assert doubles[0] == 2 * threads
    assert longs[:4].tolist() == [i + (threads // 4 << 40) for i in range(4)]
    assert longs[4] == 90
    assert longs[5] == 9


@both
def test_a_lock_is_handed_from_lane_to_lane(run: Run, arch: str) -> None:
    mutex, total = run(f"emulated.{arch}.cubin", "lock", np.zeros(1, np.int32), np.zeros(1, np.int32), block=(64, 1, 1))
    assert total[0] == 63 * 32
    assert mutex[0] == 0


@both
@pytest.mark.parametrize(("blocks", "threads"), [(1, 32), (1, 64), (3, 128)])
def test_votes_at_a_barrier(run: Run, arch: str, blocks: int, threads: int) -> None:
    values = random(threads)
    _, out = run(f"emulated.{arch}.cubin", "votes", values, np.zeros(threads, np.int32), grid=(blocks, 1, 1), block=(threads, 1, 1))
    assert (out == 4 * (values > 3).sum() + 2 * int((values != 0).all()) + int((values > 6).any())).all()


@both
def test_barriers_for_a_part_of_the_block(run: Run, arch: str) -> None:
    values = random(64)
    _, out = run(f"emulated.{arch}.cubin", "barriers", values, np.zeros(128, np.int32), block=(128, 1, 1))
    assert (out[:64] == values[::-1]).all()
    assert (out[64:] == values[::-1] + 1).all()


@both
def test_lanes_are_together_again_after_loops_of_different_length(run: Run, arch: str) -> None:
    values = np.concatenate([random(32), np.zeros(32, np.int32)]).astype(np.int32)
    (out,) = run(f"emulated.{arch}.cubin", "reconverges", values)
    x = np.arange(32)
    for i in range(8):
        x = np.where(i < np.arange(32) % 8, x * 3 + values[i], x)
    x = x + x[np.arange(32) ^ 16]
    third = np.arange(32) % 3 == 0
    x = np.where(third, x + (x[third] & 1).sum(), x)
    assert (out[32:] == x).all()


@both
def test_asynchronous_copies_arrive_group_by_group(run: Run, arch: str) -> None:
    source = np.random.default_rng(1).random((128, 4), np.float32)
    _, out = run(f"emulated.{arch}.cubin", "copies", source, np.zeros((64, 4), np.float32), 40, block=(64, 1, 1))
    first, second = source[:64].copy(), source[64:]
    first[40:] = 0
    assert (out == np.concatenate([first[::-1, :2], second[::-1, 2:]], axis=1)).all()


@both
def test_matrices_come_by_rows_or_transposed(run: Run, arch: str) -> None:
    words = np.random.default_rng(1).integers(0, 1 << 32, 128, np.uint32)
    _, out = run(f"emulated.{arch}.cubin", "matrices", words, np.zeros(192, np.uint32))
    assert (out[:128] == words).all()
    transposed = words.view(np.uint16)[:128].reshape(2, 8, 8).swapaxes(1, 2)
    assert (out[128:] == np.ascontiguousarray(transposed).view(np.uint32).reshape(-1)).all()


@hopper
def test_a_bulk_copy_completes_on_a_barrier_object(run: Run, arch: str) -> None:
    source = np.random.default_rng(1).random(256, np.float32)
    _, out = run(f"asynchronous.{arch}.cubin", "bulk", source, np.zeros(256, np.float32), block=(256, 1, 1))
    assert (out == 2 * source).all()


@hopper
def test_threads_meet_at_barrier_objects(run: Run, arch: str) -> None:
    source = np.random.default_rng(1).random(128, np.float32)
    _, out = run(f"asynchronous.{arch}.cubin", "objects", source, np.zeros((3, 128), np.float32), 3, block=(128, 1, 1))
    reverse = source[::-1]
    assert (out == np.stack([(reverse + np.float32(k)) + 2 * reverse for k in range(3)])).all()


@hopper
def test_matrices_are_stored_by_rows_or_transposed(run: Run, arch: str) -> None:
    words = np.random.default_rng(1).integers(0, 1 << 32, 64, np.uint32)
    _, out = run(f"asynchronous.{arch}.cubin", "matrices", words, np.zeros(96, np.uint32))
    assert (out[:64] == words).all()
    assert (out[64:].view(np.uint16).reshape(8, 8) == words[:32].view(np.uint16).reshape(8, 8).T).all()
