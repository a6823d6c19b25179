"""What sassir adds to xDSL's tools: found by `xdsl-opt` through the entry point `xdsl.universe`. Imports nothing until it is used."""

from __future__ import annotations

from xdsl.ir import Dialect
from xdsl.universe import Universe
from xdsl.utils.frontend import Frontend
from xdsl.utils.target import Target

from sassir.passes import PASSES


def _sass() -> Dialect:
    from sassir.dialect import SASS

    return SASS


def _cubin_frontend() -> type[Frontend]:
    from sassir.translate.frontends import CubinFrontend

    return CubinFrontend


def _sass_frontend() -> type[Frontend]:
    from sassir.translate.frontends import SassFrontend

    return SassFrontend


def _cubin_target() -> type[Target]:
    from sassir.translate.frontends import CubinTarget

    return CubinTarget


def _sass_target() -> type[Target]:
    from sassir.translate.frontends import SassTarget

    return SassTarget


SASSIR = Universe(
    all_dialects={"sass": _sass},
    all_passes=PASSES,
    all_frontends={"cubin": _cubin_frontend, "sass": _sass_frontend},
    all_targets={"cubin": _cubin_target, "sass": _sass_target},
)
