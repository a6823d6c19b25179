"""Reader of launch files: TOML that says how a kernel file is launched. The format is described in docs/launch-files.md.

[launches]
full = { n = 33554432, blocks = 2112 }
tail = { n = 1000, blocks = 3 }

[buffers]
x = { dtype = "f32", shape = "n", role = "in", fill = "uniform(-1, 1)" }
y = { dtype = "f32", shape = "n", role = "inout", fill = "uniform(-1, 1)" }

[[steps]]
kernel = "saxpy"
grid = "blocks"
block = 256
arguments = [{ i32 = "n" }, { f32 = 1.5 }, "x", "y"]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar, cast, get_args

from sassir.errors import LaunchError
from sassir.launch.data import GENERATORS, STORAGE
from sassir.launch.expression import Number, evaluate, evaluate_call
from sassir.launch.records import WORK, Argument, Buffer, Facts, Launch, LaunchFile, Role, Scalar, Step, Tolerance
from sassir.launch.tables import MAX_GRID, Sizes, Table, check_keys, load_toml, place, read_block, read_dim3, table_of, whole

Flags = TypeVar("Flags", Facts, Tolerance)

MAX_CLUSTER = (16, 16, 16)


def read_launch_file(path: str | Path) -> LaunchFile:
    """Every launch of the file, evaluated and checked. Raises LaunchError with file, launch and key."""
    path = Path(path)
    with place(str(path)):
        document = load_toml(path, "launch file")
        keys = {"seed", "timed", "sizes", "symbols", "fill", "work", "facts", "tolerance"}
        check_keys(document, required={"launches", "buffers", "steps"}, optional=keys)
        launches = table_of(document, "launches")
        for name in table_of(document, "fill"):
            if name not in launches:
                raise LaunchError(f"fill.{name}: there is no launch {name!r}; there are {', '.join(launches)}")
        timed = document.get("timed", [*launches])
        if not isinstance(timed, list) or not all(name in launches for name in cast(list[str], timed)):
            raise LaunchError(f"timed: {timed!r} is not a list of launches; there are {', '.join(launches)}")
        return LaunchFile(
            path,
            {name: _read_launch(document, name) for name in launches},
            _read_flags(document, "facts", Facts) or Facts(),
            _read_flags(document, "tolerance", Tolerance),
            tuple(cast(list[str], timed)),
        )


def read_launch(path: str | Path, name: str, sizes: Mapping[str, Number]) -> Launch:
    """The launch `name` of the file with other values for some of its sizes. Raises LaunchError."""
    path = Path(path)
    with place(str(path)):
        document = load_toml(path, "launch file")
        launches = table_of(document, "launches")
        if name not in launches:
            raise LaunchError(f"no launch {name!r}; there are {', '.join(launches)}")
        if unknown := sizes.keys() - table_of(launches, name).keys() - table_of(document, "sizes").keys():
            raise LaunchError(f"launch {name!r} has no size {min(unknown)!r}; it has {', '.join(table_of(launches, name))}")
        return _read_launch({**document, "launches": {name: {**launches[name], **sizes}}}, name)


def _read_launch(document: Table, name: str) -> Launch:
    with place(f"launches.{name}"):
        sizes = _read_sizes(document, name)
        fills = table_of(table_of(document, "fill"), name)
        buffers = {key: _read_buffer(document, key, sizes, fills.get(key)) for key in table_of(document, "buffers")}
        if unknown := fills.keys() - buffers.keys():
            raise LaunchError(f"fill.{name} names the unknown buffer {min(unknown)!r}; there are {', '.join(buffers)}")
        steps = tuple(_read_step(step, i, buffers, sizes) for i, step in enumerate(document["steps"]))
        symbols = tuple((symbol, _find(buffers, buffer, f"symbols.{symbol}")) for symbol, buffer in table_of(document, "symbols").items())
        used = {argument.name for step in steps for argument in step.arguments if isinstance(argument, Buffer)}
        if idle := buffers.keys() - used - {buffer.name for _, buffer in symbols}:
            raise LaunchError(f"no step uses the buffer {min(idle)!r}; pass it as an argument or remove it")
        return Launch(name, sizes, tuple(buffers.values()), symbols, steps, _read_work(document, sizes))


def _read_sizes(document: Table, name: str) -> Sizes:
    sizes: dict[str, Number] = {}
    for key, value in table_of(document["launches"], name).items():
        with place(key):
            sizes[key] = evaluate(value, sizes)
    for key, value in table_of(document, "sizes").items():
        if key not in sizes:
            with place(f"sizes.{key}"):
                sizes[key] = evaluate(value, sizes)
    return sizes


def _read_work(document: Table, sizes: Sizes) -> Mapping[str, int]:
    with place("work"):
        table = table_of(document, "work")
        check_keys(table, required=set(), optional=set(WORK))
        return {key: whole(amount, sizes, key) for key, amount in table.items()}


def _read_buffer(document: Table, name: str, sizes: Sizes, fill: object) -> Buffer:
    with place(f"buffers.{name}"):
        table = table_of(document["buffers"], name)
        check_keys(table, required={"dtype", "shape", "role"}, optional={"fill"})
        dtype, role, shape = table["dtype"], table["role"], table["shape"]
        if dtype not in STORAGE:
            raise LaunchError(f"dtype: unknown element type {dtype!r}; known: {', '.join(STORAGE)}")
        if role not in get_args(Role):
            raise LaunchError(f"role: unknown role {role!r}; known: {', '.join(get_args(Role))}")
        if fill is None:
            fill = table.get("fill", "poison" if role in ("out", "scratch") else None)
        if fill is None:
            raise LaunchError(f"fill: a buffer that is read needs one, for example uniform(-1, 1); known: {', '.join(GENERATORS)}")
        generator, arguments = evaluate_call(fill, sizes)
        if generator not in GENERATORS:
            raise LaunchError(f"fill: unknown generator {generator!r}; known: {', '.join(GENERATORS)}")
        extents = cast(list[object], shape) if isinstance(shape, list) else [shape]
        seed = whole(document.get("seed", 1), {}, "seed")
        return Buffer(name, dtype, tuple(whole(extent, sizes, "shape") for extent in extents), role, generator, arguments, seed)


def _read_step(table: Table, index: int, buffers: Mapping[str, Buffer], sizes: Sizes) -> Step:
    with place(f"steps[{index}]"):
        check_keys(table, required={"kernel", "grid", "block", "arguments"}, optional={"shared", "cluster", "cooperative"})
        block = read_block(table["block"], sizes)
        grid = read_dim3(table["grid"], sizes, "grid", MAX_GRID)
        shared = whole(table.get("shared", 0), sizes, "shared")
        arguments, structs = _read_arguments(table["arguments"], buffers, sizes)
        cluster = read_dim3(table["cluster"], sizes, "cluster", MAX_CLUSTER) if "cluster" in table else None
        if cluster and any(blocks % extent for blocks, extent in zip(grid, cluster, strict=True)):
            raise LaunchError(f"cluster: the grid {grid} is not a multiple of {cluster}")
        cooperative = table.get("cooperative", False)
        if not isinstance(cooperative, bool):
            raise LaunchError(f"cooperative: {cooperative!r} is neither true nor false")
        return Step(table["kernel"], grid, block, shared, arguments, structs, cluster, cooperative)


def _read_arguments(table: Any, buffers: Mapping[str, Buffer], sizes: Sizes) -> tuple[tuple[Argument, ...], tuple[range, ...]]:
    arguments, structs = list[Argument](), list[range]()
    for i, argument in enumerate(table):
        fields = [argument]
        if isinstance(argument, list) and argument:
            fields = cast(list[object], argument)
            structs.append(range(len(arguments), len(arguments) + len(fields)))
        arguments += [_read_argument(field, i, buffers, sizes) for field in fields]
    return tuple(arguments), tuple(structs)


def _read_argument(argument: object, index: int, buffers: Mapping[str, Buffer], sizes: Sizes) -> Buffer | Scalar:
    with place(f"arguments[{index}]"):
        match argument:
            case str(name):
                return _find(buffers, name, "buffer")
            case dict() if len(cast(Table, argument)) == 1:
                ((dtype, value),) = cast(Table, argument).items()
                if dtype not in STORAGE:
                    raise LaunchError(f"unknown scalar type {dtype!r}; known: {', '.join(STORAGE)}")
                scalar = Scalar(dtype, evaluate(value, sizes))
                scalar.stored()
                return scalar
            case _:
                raise LaunchError(f'expected the name of a buffer or a scalar such as {{ i32 = "n" }}, or a list of them, not {argument!r}')


def _find(buffers: Mapping[str, Buffer], name: object, key: str) -> Buffer:
    if name not in buffers:
        raise LaunchError(f"{key}: unknown buffer {name!r}; there are {', '.join(buffers)}")
    return buffers[cast(str, name)]


def _read_flags(document: Table, key: str, record: type[Flags]) -> Flags | None:
    if key not in document:
        return None
    with place(key):
        table = table_of(document, key)
        defaults = {f.name: f.default for f in fields(record)}
        check_keys(table, required=set(), optional=set(defaults))
        for name, value in table.items():
            if isinstance(value, bool) != isinstance(defaults[name], bool) or not isinstance(value, int | float):
                raise LaunchError(f"{name}: {value!r} is not of the kind of its default, {defaults[name]!r}")
        return record(**table)
