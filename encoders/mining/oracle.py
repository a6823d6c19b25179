"""nvdisasm as an oracle: what NVIDIA's own disassembler says of any 128-bit word.

One call reads a raw stream of words (`nvdisasm -b SM90 -raw`), 25 us a word after 0.4 s of start-up, so callers batch.
Undecodable words do not end a call: nvdisasm names each of their addresses on stderr and prints nothing; they are
replaced by NOP and the call is repeated.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from sassir.errors import EncodingError

WORD_BYTES = 16
NOP = 0x000FC000000000000000000000007918
BATCH = 60_000

_ADDRESS = re.compile(r" at address 0x([0-9a-f]+)")
_LINE = re.compile(r"\s+/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;?\s*$")
_CLASS = re.compile(r"Opclass '(\w+)', undefined value 0x[0-9a-f]+ for table 'TABLES_opex")

_SCHEDULE_SHIFT, _ILLEGAL_SCHEDULE = 105, 16


def find_nvdisasm() -> Path:
    """nvdisasm on PATH, or the one of the wheel `nvidia-cuda-nvdisasm`. Raises EncodingError when there is none."""
    if found := shutil.which("nvdisasm"):
        return Path(found)
    spec = find_spec("nvidia")
    for root in spec.submodule_search_locations or () if spec else ():
        if found := sorted(Path(root).glob("*/bin/nvdisasm")):
            return found[-1]
    raise EncodingError("nvdisasm was not found; install it with `pip install nvidia-cuda-nvdisasm`")


class Oracle:
    """nvdisasm for one architecture, `sm_90` or the like."""

    def __init__(self, arch: str) -> None:
        self.arch = arch
        self.path = find_nvdisasm()
        self.words = 0

    def version(self) -> str:
        """The release that `nvdisasm --version` names: `13.5.37`."""
        text = subprocess.run([self.path, "--version"], capture_output=True, text=True, check=True).stdout
        return text.rpartition(" V")[2].split()[0]

    def texts(self, words: Sequence[int]) -> list[str | None]:
        """The text of each word, as if word i stood at address 16 * i of its batch; None where nvdisasm rejects it."""
        return [text for text, _ in self._run(words)]

    def classes(self, words: Sequence[int]) -> list[str | None]:
        """nvdisasm's name for the encoding class of each word, which an illegal schedule field makes it tell."""
        clear = ~(31 << _SCHEDULE_SHIFT)
        probes = [word & clear | _ILLEGAL_SCHEDULE << _SCHEDULE_SHIFT for word in words]
        matches = [_CLASS.match(error) for _, error in self._run(probes)]
        return [match[1] if match else None for match in matches]

    def _run(self, words: Sequence[int]) -> list[tuple[str | None, str]]:
        """(text, "") or (None, error) for each word."""
        result: list[tuple[str | None, str]] = []
        for start in range(0, len(words), BATCH):
            result += self._batch(list(words[start : start + BATCH]))
        return result

    def _batch(self, words: list[int]) -> list[tuple[str | None, str]]:
        self.words += len(words)
        errors: dict[int, str] = {}
        while True:
            done = self._call(words)
            if done.returncode == 0:
                break
            if "nvdisasm fatal" in done.stderr:
                return self._bisect(words, errors, done.stderr)
            found: dict[int, str] = {}
            for line in done.stderr.splitlines():
                if match := _ADDRESS.search(line):
                    found[int(match[1], 16) // WORD_BYTES] = line[: match.start()].partition(":")[2].strip()
            if not found:
                raise EncodingError(f"nvdisasm failed: {done.stderr[:300].strip()}")
            errors |= found
            for index in found:
                words[index] = NOP
        texts: list[str | None] = [None] * len(words)
        for line in done.stdout.splitlines():
            if match := _LINE.match(line):
                texts[int(match[1], 16) // WORD_BYTES] = match[2]
        return [(None, errors[i]) if i in errors else (text, "") for i, text in enumerate(texts)]

    def _bisect(self, words: list[int], errors: dict[int, str], why: str) -> list[tuple[str | None, str]]:
        """A word that matches two patterns ends the whole call and its address is not told: halve until it is alone."""
        if len(words) == 1:
            return [(None, why.strip())]
        half = len(words) // 2
        result = self._batch(words[:half]) + self._batch(words[half:])
        return [(None, errors[i]) if i in errors else pair for i, pair in enumerate(result)]

    def _call(self, words: list[int]) -> subprocess.CompletedProcess[str]:
        with tempfile.NamedTemporaryFile(suffix=".bin") as file:
            file.write(b"".join(word.to_bytes(WORD_BYTES, "little") for word in words))
            file.flush()
            command = [self.path, "-b", self.arch.replace("sm_", "SM"), "-raw", file.name]
            return subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
