"""Kernels that reduce, sort or scan rows. `b` holds the buffers before the launch, by name, `s` the sizes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from references.arithmetic import F32, fma

Arrays = Mapping[str, Any]
BLOCK = 256


def tree_sum(values: Any) -> Any:
    """The sum over the last axis, a power of two long, by halves, as threads in a block add."""
    while values.shape[-1] > 1:
        half = values.shape[-1] // 2
        values = values[..., :half] + values[..., half:]
    return values[..., 0]


def strided_sum(values: Any, threads: int) -> Any:
    """Each thread adds every `threads`-th element of the last axis, one after the other, from zero."""
    length = values.shape[-1]
    total = np.zeros((*values.shape[:-1], threads), values.dtype)
    for first in range(0, length, threads):
        part = values[..., first : first + threads]
        total[..., : part.shape[-1]] += part
    return total


def reduce_sum(b: Arrays, s: Arrays) -> Arrays:
    sums = strided_sum(b["x"], BLOCK * s["blocks"])
    return {"part": tree_sum(sums.reshape(s["blocks"], BLOCK))}


def cupy_l2norm(b: Arrays, s: Arrays) -> Arrays:
    threads = 512
    x = np.pad(b["x"], ((0, 0), (0, -s["cols"] % threads)))
    squares = np.zeros((s["rows"], threads), F32)
    for first in range(0, x.shape[1], threads):
        part = x[:, first : first + threads]
        squares = fma(part, part, squares)
    return {"y": np.sqrt(tree_sum(squares))}


def histogram256(b: Arrays, s: Arrays) -> Arrays:
    return {"h": b["h"] + np.bincount(b["d"], minlength=256).astype(np.uint32)}


def scan_block(b: Arrays, s: Arrays) -> Arrays:
    running = np.cumsum(b["in"], axis=1, dtype=np.int32)
    return {"out": running - b["in"], "sums": running[:, -1]}


def topk_local(b: Arrays, s: Arrays) -> Arrays:
    padding = np.full((s["k"], s["rows"]), 3.4e38, F32)
    return {"out": np.sort(np.concatenate([b["d"], padding]), axis=0)[: s["k"]]}


def spmv_csr(b: Arrays, s: Arrays) -> Arrays:
    first, last = b["ptr"][:-1], b["ptr"][1:]
    y = np.zeros(s["rows"], F32)
    for step in range(int((last - first).max(initial=0))):
        entry = np.minimum(first + step, len(b["col"]) - 1)
        y = np.where(first + step < last, fma(b["val"][entry], b["x"][b["col"][entry]], y), y)
    return {"y": y}


def nw_tile(b: Arrays, s: Arrays) -> Arrays:
    penalty, tiles = 3, s["t"]
    score = b["mat"].copy()
    gain = b["ref"].reshape(tiles, 32, tiles, 32).transpose(0, 2, 1, 3)
    for i in range(1, 33):
        for j in range(1, 33):
            gap = np.maximum(score[..., i, j - 1], score[..., i - 1, j]) - penalty
            score[..., i, j] = np.maximum(score[..., i - 1, j - 1] + gain[..., i - 1, j - 1], gap)
    return {"mat": score}


def softmax(x: Any) -> Any:
    """Of the last axis, in double precision."""
    e = np.exp(x.astype(np.float64) - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def softmax_rows(b: Arrays, s: Arrays) -> Arrays:
    return {"y": softmax(b["x"])}


def triton_softmax(b: Arrays, s: Arrays) -> Arrays:
    o = b["o"].astype(np.float64)  # behind the columns of a row nothing is written
    o[:, : s["cols"]] = softmax(b["x"][:, : s["cols"]])
    return {"o": o}


def layernorm_rows(b: Arrays, s: Arrays) -> Arrays:
    x = b["x"].astype(np.float64)
    mean, rstd = x.mean(axis=1), 1 / np.sqrt(x.var(axis=1) + 1e-5)
    y = (x - mean[:, None]) * rstd[:, None] * b["w"] + b["b"]
    return {"y": y, "mean": mean, "rstd": rstd}


def triton_layernorm(b: Arrays, s: Arrays) -> Arrays:
    return {"o": layernorm_rows(b, s)["y"]}


def dgemv_col(b: Arrays, s: Arrays) -> Arrays:
    return {"y": b["x"] @ b["A"]}
