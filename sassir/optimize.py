"""Optimise the kernels of a module, one by one: a kernel that cannot be changed soundly stays as it was, with the reason."""

from __future__ import annotations

import gc
import tomllib
import warnings
from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple, cast

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.passes import ModulePass
from xdsl.utils.arg_spec import parse_spec
from xdsl.utils.exceptions import ArgSpecParseError, VerifyException

from sassir.dialect.facts import used_facts
from sassir.dialect.instruction import SassInstruction
from sassir.dialect.operations import ALLOCATED, KernelOp
from sassir.errors import SassirError, SassirWarning, TranslationError
from sassir.launch import Facts, Launch
from sassir.passes import LOADED, PASSES, load_passes
from sassir.passes.verify_ssa import VerifySsa
from sassir.rewrite.kernels import arch_of
from sassir.timing.kernels import predicted_gains
from sassir.translate.cubin import encode, read_module, write_cubin
from sassir.translate.emit import emit_function, emit_program
from sassir.translate.facts import NOTHING_KNOWN, KnownFacts, attach_facts, known_facts
from sassir.translate.summaries import summaries
from sassir.verify.assumptions import Assumptions, assumptions_of

BEFORE = ("sass-virtualise",)
ALLOCATION = ("sass-allocate-registers",)
AFTER = ("sass-assign-control", "sass-check-allocation", "sass-check-schedule")
"""What every pipeline has: at its beginning, in its middle, at its end."""
BEHIND = ("sass-schedule", "sass-keep-cache")
"""What comes behind allocation, unless a pipeline says something else."""
VERSION = 1
"""Of pipeline files."""
LOSS = 0.97
"""A predicted gain below this is a loss; nearer to 1 the timing model does not tell (docs/timing.md)."""


@contextmanager
def collection_paused() -> Generator[None]:
    """Python looks for no garbage: a kernel's objects refer to one another and stay, and to search them again and again takes a fifth of
    the time of all passes."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class Pipeline(NamedTuple):
    """Passes in order, as `sassir-opt -p` takes them."""

    name: str
    version: int
    """Of the form of the file."""
    passes: tuple[str, ...]
    """Between freeing the registers and choosing them anew."""
    behind: tuple[str, ...] = BEHIND
    """Between choosing the registers and the control codes."""

    @property
    def texts(self) -> tuple[str, ...]:
        """All that runs, in order, as `sassir-opt -p` takes it."""
        return (*BEFORE, *self.passes, *ALLOCATION, *self.behind, *AFTER)

    def all_passes(self) -> list[ModulePass]:
        """The passes, ready to run. Raises TranslationError for an unknown one, or an option that it does not have."""
        return [make_pass(text) for text in self.texts]


class Task(NamedTuple):
    """A cubin to optimise: how, and what is known of it."""

    original: bytes
    where: str
    """Its name in messages."""
    pipeline: Pipeline
    stated: Facts | None = None
    """What holds in every launch of a launch file."""
    case: Launch | None = None
    """The launch that it is optimised for; without one, for all."""
    kernels: Sequence[str] = ()
    """Those to optimise; all if there are none."""
    without: Collection[str] = ()
    """Those to leave as they are."""
    given: KnownFacts = NOTHING_KNOWN
    """More facts, by kernel."""


class Outcome(NamedTuple):
    """What became of one kernel."""

    kernel: str
    changed: bool
    reason: str
    """Why it stayed as it was; empty if it changed."""
    instructions: tuple[int, int]
    """Before and after."""
    facts: tuple[str, ...]
    """What the new code relies on."""


class Optimised(NamedTuple):
    """A cubin and how it came about."""

    cubin: bytes
    outcomes: tuple[Outcome, ...]
    assumptions: Assumptions
    """The facts that it relies on."""


def read_pipeline(name: str) -> Pipeline:
    """The pipeline called `name` in passes/pipelines, or in the TOML file of that name. Raises TranslationError.

    `passes` of such a file are those in front of allocation, `behind` those behind it (if absent: `BEHIND`). `load` lists Python files
    with passes of its own, from its folder.
    """
    source = Path(name) if name.endswith(".toml") else files("sassir.passes").joinpath("pipelines", f"{name}.toml")
    if not source.is_file():
        raise TranslationError(f"there is no pipeline {name!r}; there are default and launch, or give a TOML file")
    try:
        found = tomllib.loads(source.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise TranslationError(f"{name}: cannot read the pipeline: {error}") from error
    if found.get("version") != VERSION:
        raise TranslationError(f"{name}: expected `version = {VERSION}`")
    passes = _texts(found.get("passes"), f"{name}: passes")
    for file in _texts(found.get("load", []), f"{name}: load"):
        load_passes(Path(name).parent / file)
    return Pipeline(name, VERSION, passes, _texts(found.get("behind", list(BEHIND)), f"{name}: behind"))


def _texts(value: object, what: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in cast(list[object], value)):
        raise TranslationError(f"{what}: expected a list of texts")
    return tuple(cast(list[str], value))


def make_pass(text: str) -> ModulePass:
    """The pass written as `sass-unroll{factor=4}`. Raises TranslationError."""
    try:
        spec = parse_spec(text)
        if spec.name not in PASSES:
            raise TranslationError(f"no pass is called {spec.name}; `sassir-opt --list-passes` shows what there is")
        return PASSES[spec.name]().from_spec(spec)
    except (ArgSpecParseError, ValueError) as error:
        raise TranslationError(f"pass {text!r}: {error}") from error


def optimise(module: ModuleOp, pipeline: Pipeline, kernels: Sequence[str] = (), without: Collection[str] = ()) -> list[Outcome]:
    """Run `pipeline` over each kernel by itself, or over those named, `without` some.

    Facts are attributes of the kernels (see `attach_facts`). What a kernel cannot bear, because a pass refuses it or a checker
    finds a fault, leaves that kernel as it was.
    """
    passes = pipeline.all_passes()
    return [
        _optimise_kernel(module, op, passes)
        for op in list(module.body.ops)
        if isinstance(op, KernelOp) and (not kernels or op.function.data in kernels) and op.function.data not in without
    ]


def _optimise_kernel(module: ModuleOp, kernel: KernelOp, passes: Iterable[ModulePass]) -> Outcome:
    name, before = kernel.function.data, _count(kernel)
    if reason := summaries(module).immovable:
        return Outcome(name, False, reason, (before, before), ())
    made = kernel.clone()
    alone = ModuleOp([made], dict(module.attributes))
    try:
        with collection_paused():
            for step in passes:
                step.apply(Context(), alone)
                if step.name in LOADED:
                    alone.verify()
                    VerifySsa().apply(Context(), alone)
            encode(emit_function(made), arch_of(module))
    except (SassirError, VerifyException) as error:
        return Outcome(name, False, str(error), (before, before), ())
    reason = made.fixed or made.attributes.get(ALLOCATED)
    if isinstance(reason, StringAttr):
        return Outcome(name, False, reason.data, (before, before), ())
    made.detach()
    parent = kernel.parent
    assert parent is not None
    parent.insert_op_before(made, kernel)
    kernel.detach()
    kernel.erase()
    return Outcome(name, True, "", (before, _count(made)), used_facts(made))


def _count(kernel: KernelOp) -> int:
    return sum(isinstance(op, SassInstruction) for block in kernel.body.blocks for op in block.ops)


def optimise_cubin(task: Task) -> Optimised:
    """Optimise the kernels of a cubin.

    Raises SassirError for a file that cannot be read, facts that contradict each other, and where the task or the facts name a kernel that
    is not in it.
    """
    module = read_module(task.original, task.where)
    facts = known_facts(arch_of(module), task.case, task.stated, task.given)
    there = [op.function.data for op in module.body.ops if isinstance(op, KernelOp)]
    if missing := [name for name in (*task.kernels, *facts) if name not in there]:
        raise TranslationError(f"{task.where}: no kernel {missing[0]!r}; there are {', '.join(there)}")
    attach_facts(module, facts)
    outcomes = tuple(optimise(module, task.pipeline, task.kernels, task.without))
    return Optimised(write_cubin(emit_program(module)), outcomes, assumptions_of(module))


def optimise_or_keep(task: Task) -> tuple[Optimised, Mapping[str, float]]:
    """As `optimise_cubin`, but a kernel that the timing model expects to become slower stays as it was.

    Returns the predicted gains as well (see `predicted_gains`). Where there is no prediction, it warns (SassirWarning).
    """
    made = optimise_cubin(task)
    try:
        gains = predicted_gains(task.original, made.cubin, task.where, task.case, task.stated, task.given)
    except SassirError as error:
        warnings.warn(f"{task.where}: no prediction: {error}", SassirWarning, stacklevel=2)
        return made, {}
    slower = {k: f"the timing model expects it to take {1 / gain:.2f} times as long" for k, gain in gains.items() if gain < LOSS}
    return give_back(task, made, slower), gains


def give_back(task: Task, made: Optimised, reasons: Mapping[str, str]) -> Optimised:
    """What `optimise_cubin` made of the task, with some kernels as they were: `reasons` by name."""
    if not any(o.changed and o.kernel in reasons for o in made.outcomes):
        return made
    kept = {o.kernel for o in made.outcomes if not o.changed or o.kernel in reasons}
    changed = [o.kernel for o in made.outcomes if o.kernel not in kept]
    again = optimise_cubin(task._replace(kernels=changed, without=kept))
    return again._replace(outcomes=tuple([_kept(o, reasons.get(o.kernel, "")) for o in made.outcomes]))


def _kept(outcome: Outcome, reason: str) -> Outcome:
    if not reason or not outcome.changed:
        return outcome
    return Outcome(outcome.kernel, False, reason, (outcome.instructions[0], outcome.instructions[0]), ())
