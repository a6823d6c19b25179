"""A call in a process of its own: what it returns, what it raises, and that the next call works again."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator

import pytest

from sassir.errors import LaunchError
from sassir.gpu import Worker


def add(a: int, b: int) -> int:
    return a + b


def process_id() -> int:
    return os.getpid()


def fail() -> None:
    raise LaunchError("an illegal memory access was encountered")


def loop_forever() -> None:
    while True:
        time.sleep(1)


def crash() -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def leave() -> None:
    os._exit(3)


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker(timeout=2) as worker:
        yield worker


def test_calls_share_a_process_that_is_not_ours(worker: Worker) -> None:
    assert worker.call(add, 2, b=3) == 5
    assert worker.call(process_id) == worker.call(process_id) != os.getpid()


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (fail, "an illegal memory access was encountered"),
        (loop_forever, "no result after 2 s; the kernel may loop forever"),
        (crash, "the process of the kernel died (signal 11)"),
        (leave, "the process of the kernel died (exit status 3)"),
    ],
)
def test_a_failure_is_a_result_and_the_next_call_works(worker: Worker, function: Callable[[], None], message: str) -> None:
    before = worker.call(process_id)
    with pytest.raises(LaunchError) as caught:
        worker.call(function)
    assert str(caught.value) == message
    after = worker.call(process_id)
    assert after != before
    with pytest.raises(ProcessLookupError):
        os.kill(before, 0)
