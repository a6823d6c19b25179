"""Container checker: everything in a cubin that holds an offset or a size agrees with everything else.

It shares the readers of `sassir.cubin` with the code that repairs a cubin, but none of its decisions: it looks at the finished
file alone, so it also checks files that others made. It finds nothing in what NVIDIA's tools write.

| module | rules |
|---|---|
| headers | sections, program headers, symbols |
| references | relocations, call graph |
| attributes | lists of instructions, jump tables, parameters |
| code | registers, barriers, stack, branches, constants |
| debug | call frames, line tables |
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from sassir.cubin.cubin import EM_CUDA, Cubin
from sassir.cubin.elf import Elf
from sassir.errors import ContainerError
from sassir.findings import Finding
from sassir.verify.container.attributes import jump_table_findings, list_findings, owner_findings, parameter_findings
from sassir.verify.container.code import constant_findings, flow_findings, other_form_findings, resource_findings
from sassir.verify.container.debug import debug_findings
from sassir.verify.container.headers import section_findings, segment_findings, symbol_findings
from sassir.verify.container.references import callgraph_findings, relocation_findings
from sassir.verify.container.subject import ELF_RULES, Rule, Subject

HEADER_RULES = (section_findings, segment_findings, symbol_findings)
RULES: tuple[Rule, ...] = (
    relocation_findings,
    callgraph_findings,
    owner_findings,
    list_findings,
    jump_table_findings,
    parameter_findings,
    resource_findings,
    flow_findings,
    constant_findings,
    other_form_findings,
    debug_findings,
)


def check_container(data: bytes, where: str = "<bytes>") -> list[Finding]:
    """Everything in the cubin `data` that does not agree; empty for a sound file. `where` is what messages call the file.

    Raises nothing: a file that cannot be read at all is one finding, `unreadable`.
    """
    findings: list[Finding] = []
    unread: list[ContainerError] = []

    def collect(rules: Iterable[Callable[[], Iterator[Finding]]]) -> None:
        for rule in rules:
            try:
                findings.extend(rule())
            except ContainerError as error:
                unread.append(error)

    try:
        elf = Elf.read(data, where)
        if elf.machine == EM_CUDA:
            collect(partial(rule, elf) for rule in HEADER_RULES)
        subject = Subject(Cubin.read(data, where))
        collect(partial(rule, subject) for rule in RULES)
    except ContainerError as error:
        unread.append(error)
    if unread and not any(finding.error for finding in findings):
        findings.append(Finding("unreadable", where, None, str(unread[0]).removeprefix(f"{where}: "), ELF_RULES))
    return findings
