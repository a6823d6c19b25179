"""Running and measuring kernels on an NVIDIA GPU. PyCUDA (extra `gpu`) is imported only when something is launched."""

from sassir.gpu.device import DeviceInfo
from sassir.gpu.worker import Worker

__all__ = ["DeviceInfo", "Worker"]
