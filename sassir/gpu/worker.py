"""Kernels run in a process of their own, so that a crash, an illegal address or an endless loop is a result and not the end."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from types import TracebackType
from typing import ParamSpec, Self, TypeVar

from sassir.errors import LaunchError, SassirError
from sassir.gpu.device import DeviceInfo, describe_device
from sassir.gpu.runner import run
from sassir.launch import Launch, Outputs

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

START_SECONDS = 60.0
"""Time for a fresh process to import Python's packages and to create a CUDA context."""


class Worker:
    """A process for calls that may fail; it is replaced after every failure, so the next call finds an unharmed CUDA context."""

    def __init__(self, timeout: float = 30.0) -> None:
        """`timeout`: seconds a call may take."""
        self.timeout = timeout
        self._process: BaseProcess | None = None
        self._connection: Connection | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def run(self, cubin: bytes, launch: Launch) -> Outputs:
        """The output buffers after `launch`, bit for bit. Raises LaunchError when the kernel does not load, fails, or takes too long."""
        return self.call(run, cubin, launch)

    def describe_device(self) -> DeviceInfo:
        """The device that `run` uses. Raises LaunchError without PyCUDA or a GPU."""
        return self.call(describe_device)

    def call(self, function: Callable[Parameters, Result], *arguments: Parameters.args, **named: Parameters.kwargs) -> Result:
        """The result of a module-level `function` in the process. Raises its SassirError, or LaunchError when the process dies or hangs."""
        try:
            connection = self._connect()
            connection.send((function, arguments, named))
            if not connection.poll(self.timeout):
                raise LaunchError(f"no result after {self.timeout:g} s; the kernel may loop forever")
            result = connection.recv()
        except (EOFError, ConnectionError) as error:
            raise LaunchError(f"the process of the kernel died ({self._exit_status()})") from error
        except LaunchError:
            self.close()
            raise
        if isinstance(result, SassirError):
            self.close()
            raise result
        return result

    def close(self) -> None:
        """End the process, whatever it is doing."""
        if self._process is not None and self._connection is not None:
            self._connection.close()
            self._process.kill()
            self._process.join()
        self._process = self._connection = None

    def _connect(self) -> Connection:
        if self._connection is None:
            context = multiprocessing.get_context("spawn")
            self._connection, theirs = context.Pipe()
            self._process = context.Process(target=_serve, args=(theirs,), daemon=True)
            self._process.start()
            theirs.close()
            if not self._connection.poll(START_SECONDS):
                self.close()
                raise LaunchError(f"the process for kernels did not start within {START_SECONDS:g} s")
            self._connection.recv()
        return self._connection

    def _exit_status(self) -> str:
        process = self._process
        if process is None:
            return "not running"
        process.join()
        code = process.exitcode
        self.close()
        return f"signal {-code}" if code is not None and code < 0 else f"exit status {code}"


def _serve(connection: Connection) -> None:
    connection.send("ready")
    while True:
        try:
            function, arguments, named = connection.recv()
        except EOFError:
            return
        try:
            result = function(*arguments, **named)
        except SassirError as error:
            result = error
        connection.send(result)
