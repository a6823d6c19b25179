"""Matrix products, stencils and particles. `b` holds the buffers before the launch, by name, `s` the sizes.

Where a sum of two products becomes one multiplication and one fused multiply-add, nvcc fuses the left product.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from references.arithmetic import F32, fma
from references.rows import softmax

Arrays = Mapping[str, Any]


def sgemm(b: Arrays, s: Arrays) -> Arrays:
    c = np.zeros((s["M"], s["N"]), F32)
    for k in range(s["K"]):
        c = fma(b["A"][:, k, None], b["B"][k], c)
    return {"C": c}


def triton_matmul(b: Arrays, s: Arrays) -> Arrays:
    c = b["a"].astype(np.float64) @ b["b"].astype(np.float64)
    return {"c": np.where(c > 0, c, 0.01 * c)}


def triton_attention(b: Arrays, s: Arrays) -> Arrays:
    q, k, v = (b[name].astype(np.float64) for name in "qkv")
    return {"o": softmax(0.125 * (q @ k.transpose(0, 2, 1))) @ v}


def conv3x3(b: Arrays, s: Arrays) -> Arrays:
    height, width, taps = s["H"], s["W"], s["R"]
    edge = taps // 2
    inside = np.pad(np.ones((height, width), bool), edge)
    padded = np.pad(b["in"], ((0, 0), (0, 0), (edge, edge), (edge, edge)))
    acc = np.broadcast_to(b["bias"][None, :, None, None], (s["N"], s["K"], height, width)).astype(F32)
    for c in range(s["C"]):
        for y in range(taps):
            for x in range(taps):
                window = np.s_[y : y + height, x : x + width]
                weight = b["wt"][None, :, c, y, x, None, None]
                acc = np.where(inside[window], fma(padded[:, None, c][..., *window], weight, acc), acc)
    return {"out": acc}


def jacobi2d(b: Arrays, s: Arrays) -> Arrays:
    u, v = b["u"], b["v"].copy()
    total = u[1:-1, :-2] + u[1:-1, 2:] + u[:-2, 1:-1] + u[2:, 1:-1]
    v[1:-1, 1:-1] = F32(0.25) * fma(-F32(1e-4), b["f"][1:-1, 1:-1], total)
    return {"v": v}


def stencil3d7(b: Arrays, s: Arrays) -> Arrays:
    u, out = b["in"], b["out"].copy()
    middle = slice(1, -1)
    total = u[middle, middle, :-2] + u[middle, middle, 2:] + u[middle, :-2, middle] + u[middle, 2:, middle]
    total = total + u[:-2, middle, middle] + u[2:, middle, middle]
    out[middle, middle, middle] = fma(0.4, u[middle, middle, middle], F32(0.1) * total)
    return {"out": out}


def lbm_d2q9(b: Arrays, s: Arrays) -> Arrays:
    cx, cy = (0, 1, 0, -1, 0, 1, -1, -1, 1), (0, 0, 1, 0, -1, 1, 1, -1, -1)
    weights = (4 / 9, *[1 / 9] * 4, *[1 / 36] * 4)
    v = [np.roll(b["f"][q].astype(np.float64), (cy[q], cx[q]), axis=(0, 1)) for q in range(9)]
    density = sum(v)
    ux, uy = (sum(c[q] * v[q] for q in range(9)) / density for c in (cx, cy))
    g = list[Any]()
    for q in range(9):
        cu = cx[q] * ux + cy[q] * uy
        equilibrium = weights[q] * density * (1 + 3 * cu + 4.5 * cu**2 - 1.5 * (ux**2 + uy**2))
        g.append(v[q] + F32(1.2) * (equilibrium - v[q]))
    return {"g": np.stack(g)}


def mandelbrot(b: Arrays, s: Arrays) -> Arrays:
    dx = F32(3 / s["w"])
    cx, cy = (fma(np.arange(s[size]), dx, start) for size, start in (("w", -2.0), ("h", -1.5)))
    cx, cy = np.broadcast_arrays(cx[None, :], cy[:, None])
    x, y, count = np.zeros_like(cx), np.zeros_like(cx), np.zeros(cx.shape, np.int32)
    for _ in range(s["limit"]):
        inside = x * x + y * y <= 4
        x, y = np.where(inside, x * x - y * y + cx, x), np.where(inside, fma(x + x, y, cy), y)
        count += inside
    return {"out": count}


def nbody(b: Arrays, s: Arrays) -> Arrays:
    position, acceleration = b["pos"], np.zeros_like(b["pos"])
    for body in position:
        dx, dy, dz = (body[axis] - position[:, axis] for axis in range(3))
        squared = fma(dz, dz, fma(dx, dx, dy * dy)) + F32(1e-2)
        inverse = F32(1) / np.sqrt(squared)
        strength = body[3] * inverse * inverse * inverse
        for axis, distance in enumerate((dx, dy, dz)):
            acceleration[:, axis] = fma(distance, strength, acceleration[:, axis])
    return {"acc": acceleration}


def su3_spill(b: Arrays, s: Arrays) -> Arrays:
    links = (b["U"][..., 0] + 1j * b["U"][..., 1]).reshape(4, 3, 3, s["n"]).transpose(0, 3, 1, 2)
    u, v, w, x = (link.astype(np.complex128) for link in links)
    product = (u @ v) @ (w @ x)
    again = product @ u @ w
    real, imaginary = product.real.sum((1, 2)) + 0.1 * again.real.sum((1, 2)), product.imag.sum((1, 2)) - 0.1 * again.imag.sum((1, 2))
    return {"tr": np.stack([real, imaginary])}
