#!/usr/bin/env python3
"""How good are the encoding tables? Round trip and agreement with nvdisasm over real code.

    python bench/encoding_tables.py -o bench/results/encodings.json FILE…

FILEs are cubins and libraries, from bench/fetch_corpus.py for example. For each architecture: every instruction is decoded and
encoded from its fields; every distinct word's text is compared with nvdisasm's.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from datetime import date
from pathlib import Path
from typing import Any

from counted import encodings

from sassir import __version__
from sassir.asm.instruction import OPAQUE
from sassir.cubin.code import words
from sassir.cubin.cubin import Cubin
from sassir.cubin.fatbin import EntryKind
from sassir.cubin.host import open_binary
from sassir.encoders import table
from sassir.encoders.library import base_architecture, has_table
from sassir.encoders.mining.agree import agrees
from sassir.encoders.mining.oracle import BATCH, Oracle
from sassir.errors import EncodingError

LISTED = 40


def gather(files: list[Path]) -> tuple[dict[str, Counter[int]], dict[str, Counter[str]]]:
    """Words with their frequency, and numbers of cubins and kernels, by architecture."""
    code: dict[str, Counter[int]] = {}
    counts: dict[str, Counter[str]] = {}
    for file in files:
        for entry in open_binary(file.read_bytes(), str(file)):
            if entry.kind is not EntryKind.CUBIN or entry.arch is None or not has_table(entry.arch):
                continue
            cubin = Cubin.read(entry.data, str(file))
            arch = base_architecture(cubin.arch)
            counts.setdefault(arch, Counter()).update(cubins=1, kernels=len(cubin.code))
            for section in cubin.code:
                code.setdefault(arch, Counter()).update(words(section))
    return code, counts


def measure(arch: str, code: Counter[int]) -> dict[str, Any]:
    """Round trip and text agreement for one architecture."""
    coder, distinct = table(arch), list(code)
    start = time.perf_counter()
    decoded = [coder.decode(word)._replace(word=None) for word in distinct]
    decoding = time.perf_counter() - start
    result: Counter[str] = Counter(instructions=code.total(), distinct=len(distinct))
    misses: list[str] = []
    for word, instruction in zip(distinct, decoded, strict=True):
        try:
            kind = "wrong" if coder.encode(instruction) != word else "opaque" if instruction.mnemonic == OPAQUE else "exact"
        except EncodingError:
            kind = "wrong"
        result[kind] += code[word]
        result["hidden"] += code[word] if instruction.extra else 0
        if kind != "exact":
            misses.append(f"{kind}: {word:#034x} {instruction.text}")
    start = time.perf_counter()
    texts = Oracle(arch).texts(distinct)
    disassembling = time.perf_counter() - start
    differing = [
        f"{instruction.text}  |  {text}"
        for i, (instruction, text) in enumerate(zip(decoded, texts, strict=True))
        if text is None or not agrees(instruction, text, 16 * (i % BATCH), arch)
    ]
    return {
        **result,
        "text_differs": len(differing),
        "misses": misses[:LISTED],
        "differing": differing[:LISTED],
        "decode_seconds": round(decoding, 2),
        "nvdisasm_seconds": round(disassembling, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("-o", "--output", type=Path)
    args = parser.parse_args()
    code, counts = gather(args.files)
    rows = {arch: {**counts[arch], **measure(arch, code[arch])} for arch in sorted(code, key=lambda a: int(a[3:]))}
    files = sorted({f.name for f in args.files})
    head = {"date": str(date.today()), "sassir": __version__, "nvdisasm": Oracle("sm_90").version(), "files": len(files)}
    record = {**head, "architectures": rows}
    if args.output:
        args.output.parent.mkdir(parents=True, exist_ok=True)
        args.output.write_text(json.dumps(record, indent=1) + "\n")
    print("\n".join(encodings(record)))


if __name__ == "__main__":
    main()
