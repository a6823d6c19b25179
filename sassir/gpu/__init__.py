"""Running kernels on an NVIDIA GPU through PyCUDA, which is imported only when something is launched (extra `gpu`)."""

from sassir.gpu.worker import DeviceInfo, Worker

__all__ = ["DeviceInfo", "Worker"]
