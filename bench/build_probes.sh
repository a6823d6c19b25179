#!/bin/sh
# Build sassir/gpu/probes.fatbin, machine code for every major architecture, with nvcc 13 from PATH.
cd "$(dirname "$0")/../sassir/gpu" || exit
targets=
for arch in 75 80 86 89 90a 100 120; do targets="$targets -gencode arch=compute_$arch,code=sm_$arch"; done
exec nvcc -O3 -fatbin -compress-mode=size $targets -o probes.fatbin probes.cu
