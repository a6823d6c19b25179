"""The allocation checker over a finished file."""

from __future__ import annotations

from sassir.analysis.allocation import check_allocation
from sassir.dialect.operations import KernelOp
from sassir.errors import TranslationError
from sassir.findings import Finding
from sassir.translate.cubin import read_module


def allocation_findings(data: bytes, where: str = "<bytes>") -> list[Finding]:
    """The kernels in which a register holds another value than the one that is read. Raises ContainerError as `read_module`."""
    findings: list[Finding] = []
    for kernel in read_module(data, where).body.ops:
        if isinstance(kernel, KernelOp):
            try:
                check_allocation(kernel.body)
            except TranslationError as error:
                findings.append(Finding("register-holds-another-value", kernel.function.data, None, str(error), "SSA form of the code"))
    return findings
