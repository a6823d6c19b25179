"""The static timing model: what an instruction, a block, a loop and a launch take, and why.

profile   how often each line runs, what its accesses move     from the code alone, or `sample`: some blocks in the emulator
warp      one warp by itself: stalls by name                   control codes and the machine tables
network   several warps: waiting at pipes, caches and memory   mean value analysis
model     needs and waits of blocks, loops, kernel
predict   the launch
kernels   the kernels of a file; `explain`: why a control code is as it is
"""

from sassir.timing.model import Part
from sassir.timing.predict import Prediction, Shape, predict
from sassir.timing.profile import Profile, Traffic, static_profile

__all__ = ["Part", "Prediction", "Profile", "Shape", "Traffic", "predict", "static_profile"]
