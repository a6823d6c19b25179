"""The `sass` dialect of xDSL: NVIDIA machine code with one SSA value per 32-bit register."""

from xdsl.ir import Dialect

from sassir.dialect.attributes import ControlAttr, FieldsAttr, OriginAttr
from sassir.dialect.container import CONTAINERS, ContainerAttr
from sassir.dialect.facts import FactsAttr
from sassir.dialect.operations import INSTRUCTIONS, EndOp, KernelOp, LabelOp, NextOp, OpaqueOp, UndefinedOp, WarpsyncCollectiveOp
from sassir.dialect.registers import FILES
from sassir.dialect.template import TemplateAttr

SASS = Dialect(
    "sass",
    [KernelOp, LabelOp, NextOp, EndOp, OpaqueOp, UndefinedOp, WarpsyncCollectiveOp, *INSTRUCTIONS.values()],
    [*FILES.values(), TemplateAttr, ControlAttr, FieldsAttr, OriginAttr, ContainerAttr, FactsAttr],
    [CONTAINERS],
)
