"""The structures that the driver reads have the layout of cuda.h (CUDA 13.0, 64-bit)."""

from __future__ import annotations

import ctypes

from sassir.gpu import driver


def test_launch_attribute_is_an_id_and_a_union_of_64_bytes() -> None:
    attribute = driver._Attribute  # pyright: ignore[reportPrivateUsage]
    assert ctypes.sizeof(attribute) == 72
    assert (attribute.id.offset, attribute.value.offset) == (0, 8)


def test_launch_configuration() -> None:
    config = driver._Config  # pyright: ignore[reportPrivateUsage]
    offsets = [getattr(config, name).offset for name in ("grid", "block", "shared", "stream", "attributes", "count")]
    assert offsets == [0, 12, 24, 32, 40, 48]
    assert ctypes.sizeof(config) == 56


def test_a_prepared_launch_keeps_what_the_driver_will_read() -> None:
    launch = driver.PreparedLaunch(ctypes.c_void_p(1), (3, 2, 1), (32, 4, 2), b"\1\2\3", 5000, (2, 1, 1), True)
    config = launch._config  # pyright: ignore[reportPrivateUsage]
    assert ([*config.grid], [*config.block], config.shared, config.count) == ([3, 2, 1], [32, 4, 2], 5000, 2)
    attributes = [(config.attributes[i].id, [*config.attributes[i].value[:3]]) for i in range(2)]
    assert attributes == [(4, [2, 1, 1]), (2, [1, 0, 0])]
    extra = launch._extra  # pyright: ignore[reportPrivateUsage]
    assert (extra[0], extra[2], extra[4]) == (1, 2, None)
    assert ctypes.string_at(extra[1], 3) == b"\1\2\3"
    assert ctypes.c_size_t.from_address(extra[3]).value == 3
