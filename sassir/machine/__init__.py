"""Machine descriptions: pipes, latencies and control rules of each architecture."""

from sassir.machine.costs import Cost
from sassir.machine.latency import Latency
from sassir.machine.machine import Machine, Timing, machine

__all__ = ["Cost", "Latency", "Machine", "Timing", "machine"]
