"""A call in a process of its own: what it returns, what it raises, and that the next call works again.

The functions come from the standard library and from sassir: the other process could not import them from a test.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator

import pytest

from sassir.encoders import table
from sassir.errors import SassirError
from sassir.gpu import Worker


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker(timeout=2) as worker:
        yield worker


def test_calls_share_a_process_that_is_not_ours(worker: Worker) -> None:
    assert worker.call(sum, [2, 3], start=4) == 9
    assert worker.call(os.getpid) == worker.call(os.getpid) != os.getpid()


@pytest.mark.parametrize(
    ("function", "arguments", "message"),
    [
        (table, ("sm_0",), "no encoding table for sm_0"),
        (time.sleep, (60,), "no result after 2 s; the kernel may loop forever"),
        (os.abort, (), "the process of the kernel died (signal 6)"),
        (os._exit, (3,), "the process of the kernel died (exit status 3)"),
    ],
)
def test_a_failure_is_a_result_and_the_next_call_works(
    worker: Worker, function: Callable[..., object], arguments: tuple[object, ...], message: str
) -> None:
    before = worker.call(os.getpid)
    with pytest.raises(SassirError) as caught:
        worker.call(function, *arguments)
    assert str(caught.value).startswith(message)
    after = worker.call(os.getpid)
    assert after != before
    with pytest.raises(ProcessLookupError):
        os.kill(before, 0)
