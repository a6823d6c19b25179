"""What every kernel of the suite computes, in numpy: `reference(kernel, launch)`.

Where the source fixes every operation and its order, the reference repeats them in the same precision and the results agree bit for
bit, but for the payload of NaN. Elsewhere it computes in double precision, and REFERENCES says how far a kernel may lie away, and why.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from references import elementwise, grids, rows
from sassir.launch import Launch, Outputs, Tolerance
from sassir.launch.data import load, store

SUMS = "sums of products, fused as the compiler likes, in single precision"
FUNCTIONS = "exponentials, logarithms and roots approximated by the hardware, in single precision; differences of nearly equal results"
HALVES = "results rounded to 16 bits after such functions or sums: one unit in the last place"


class Reference(NamedTuple):
    """A kernel in numpy."""

    compute: Callable[[Mapping[str, Any], Mapping[str, Any]], Mapping[str, Any]]
    """Buffers before the launch and sizes to outputs."""
    tolerance: Tolerance = Tolerance()
    reason: str = ""
    """Why results may differ at all."""


REFERENCES: Mapping[str, Reference] = {
    "aes_tconst": Reference(elementwise.aes_tconst),
    "black_scholes": Reference(elementwise.black_scholes, Tolerance(absolute=1e-4, relative=1e-4, differing=1e-3), FUNCTIONS),
    "conv3x3": Reference(grids.conv3x3),
    "cupy_ew3d": Reference(elementwise.cupy_ew3d),
    "cupy_l2norm": Reference(rows.cupy_l2norm),
    "cupy_silu_f16": Reference(elementwise.cupy_silu_f16, Tolerance(absolute=1e-7, relative=1e-3), HALVES),
    "cupy_where": Reference(elementwise.cupy_where),
    "dbl_literal": Reference(elementwise.dbl_literal, Tolerance(absolute=1e-6, relative=1e-6), SUMS),
    "dgemv_col": Reference(rows.dgemv_col, Tolerance(absolute=1e-12, relative=1e-12), "another order of additions in double precision"),
    "fuse2": Reference(elementwise.fuse2),
    "gelu_bias_f16": Reference(elementwise.gelu_bias_f16, Tolerance(absolute=1e-3, relative=1e-3), HALVES),
    "histogram256": Reference(rows.histogram256),
    "jacobi2d": Reference(grids.jacobi2d),
    "layernorm_rows": Reference(rows.layernorm_rows, Tolerance(absolute=1e-5, relative=1e-5), FUNCTIONS),
    "lbm_d2q9": Reference(grids.lbm_d2q9, Tolerance(absolute=1e-7, relative=1e-5), SUMS),
    "mandelbrot": Reference(grids.mandelbrot),
    "nbody": Reference(grids.nbody),
    "nw_tile": Reference(rows.nw_tile),
    "poly_strict": Reference(elementwise.poly_strict),
    "reduce_sum": Reference(rows.reduce_sum),
    "rgb2gray_u8": Reference(elementwise.rgb2gray_u8),
    "saxpy_gs": Reference(elementwise.saxpy_gs),
    "scan_block": Reference(rows.scan_block),
    "sgemm_naive": Reference(grids.sgemm),
    "sgemm_tiled": Reference(grids.sgemm),
    "silu_mul_bf16": Reference(elementwise.silu_mul_bf16, Tolerance(absolute=1e-7, relative=1e-2), HALVES),
    "softmax_rows": Reference(rows.softmax_rows, Tolerance(relative=1e-5), FUNCTIONS),
    "spmv_csr": Reference(rows.spmv_csr),
    "stencil3d7": Reference(grids.stencil3d7),
    "su3_spill": Reference(grids.su3_spill, Tolerance(absolute=1e-4, relative=1e-4), SUMS),
    "topk_local": Reference(rows.topk_local),
    "transpose_tile": Reference(elementwise.transpose_tile),
    "triton_attention": Reference(grids.triton_attention, Tolerance(absolute=1e-3, relative=2e-3), HALVES),
    "triton_layernorm": Reference(rows.triton_layernorm, Tolerance(absolute=1e-3, relative=2e-3), HALVES),
    "triton_matmul": Reference(grids.triton_matmul, Tolerance(absolute=1e-2, relative=2e-3), HALVES),
    "triton_silu_mul": Reference(elementwise.triton_silu_mul, Tolerance(absolute=1e-7, relative=2e-3), HALVES),
    "triton_softmax": Reference(rows.triton_softmax, Tolerance(relative=1e-5), FUNCTIONS),
    "xxh32_rows": Reference(elementwise.xxh32_rows),
}


def reference(kernel: str, launch: Launch) -> Outputs:
    """The outputs of `launch`, each in the storage type of its buffer."""
    buffers = {buffer.name: load(buffer.initial(), buffer.dtype) for buffer in launch.buffers}
    with np.errstate(all="ignore"):
        found = REFERENCES[kernel].compute(buffers, launch.sizes)
        return {b.name: store(np.ascontiguousarray(found[b.name]).reshape(b.shape), b.dtype) for b in launch.outputs}
