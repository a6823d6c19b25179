"""sass-check-schedule: fail unless stall counts and scoreboards cover every dependence, on every path."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from sassir.errors import SchedulingError
from sassir.translate.emit import emit_program
from sassir.verify.schedule import check_schedule


@dataclass(frozen=True)
class CheckSchedule(ModulePass):
    """Fails unless stall counts and scoreboards cover every dependence, on every path. Changes nothing."""

    name = "sass-check-schedule"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        errors = [finding for finding in check_schedule(emit_program(op)) if finding.error]
        if errors:
            more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
            raise SchedulingError(f"kernel {errors[0].kernel}, offset {errors[0].offset:#x}: {errors[0].message}{more}")
