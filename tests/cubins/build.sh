#!/bin/sh
# Makes the binaries of this folder from its .cu files: sh build.sh PTXAS_11_8 PTXAS_12_9
# nvcc, ptxas and nvlink 13.0.88 have to be on PATH; the two arguments are the ptxas of the wheels nvidia-cuda-nvcc-cu11==11.8.89 and
# nvidia-cuda-nvcc-cu12==12.9.86. The binaries are committed because the tests must not need a compiler.
set -eu
cd "$(dirname "$0")"
ptxas_11=$1
ptxas_12=$2
scratch=$(mktemp -d)

for sm in 75 80 90 90a 100 120; do
    nvcc -cubin -arch=sm_$sm -o axpy.sm_$sm.cubin axpy.cu
    nvcc -cubin -arch=sm_$sm -o calls.sm_$sm.cubin calls.cu
done
for sm in 75 90 120; do
    nvcc -cubin -arch=sm_$sm -o jump.sm_$sm.cubin jump.cu
    for name in print inlined; do
        # By way of PTX, to take the name of this folder out of the line table.
        nvcc -ptx -lineinfo -arch=compute_$sm -o "$scratch/$name.ptx" $name.cu
        sed "s|$PWD/*||" "$scratch/$name.ptx" >"$scratch/$name.clean.ptx"
        ptxas -lineinfo -arch=sm_$sm -o $name.sm_$sm.cubin "$scratch/$name.clean.ptx"
    done
    nvcc -cubin -dc -arch=sm_$sm -o hop.sm_$sm.cubin hop.cu # relocatable
done
for sm in 80 90; do
    nvcc -cubin -arch=sm_$sm -o emulated.sm_$sm.cubin emulated.cu
    nvcc -cubin -arch=sm_$sm -o refused.sm_$sm.cubin refused.cu
    nvcc -cubin -arch=sm_$sm -o narrow.sm_$sm.cubin narrow.cu
done
for sm in 90 100; do
    nvcc -cubin -arch=sm_$sm -o asynchronous.sm_$sm.cubin asynchronous.cu
done
# The kernels of the benchmark suite for the architectures that bench/cubins does not have.
python ../../bench/build_kernels.py --arch sm_75 --arch sm_80 --arch sm_100 --arch sm_120 -o "$scratch/bench"
rm "$scratch"/bench/edited.*
tar -C "$scratch/bench" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -c . | xz -9e >bench.tar.xz
nvcc -cubin -arch=sm_90 -o frame.sm_90.cubin frame.cu
nvcc -cubin -arch=sm_90 -o tiles.sm_90.cubin tiles.cu
nvcc -cubin -arch=sm_90 -o twice.sm_90.cubin twice.cu
nvcc -cubin -arch=sm_90 -o tables.sm_90.cubin tables.cu
nvcc -cubin -arch=sm_90 -o facts.sm_90.cubin facts.cu
nvcc -cubin -rdc=true -arch=sm_90 -o unplaced.sm_90.cubin unplaced.cu
for sm in 75 90 120; do # functions in sections of their own
    nvcc -cubin -rdc=true -arch=sm_$sm -o "$scratch/unoptimised.cubin" unoptimised.cu
    nvlink -arch=sm_$sm "$scratch/unoptimised.cubin" -o unoptimised.linked.sm_$sm.cubin
done
for name in top_tested unoptimised; do
    nvcc -cubin -arch=sm_90 -Xcicc -O0 -Xptxas -O0 -o $name.sm_90.cubin $name.cu
done
# Full debug information of PTX alone, without that of CUDA, which would name this folder.
nvcc -ptx -arch=compute_90 -o "$scratch/debug.ptx" axpy.cu
ptxas -g -arch=sm_90 -o debug.sm_90.cubin "$scratch/debug.ptx"

# Older toolkits: PTX of the newer compiler, with a version that they accept. 7.8 is enough for calls.cu.
nvcc -ptx -arch=compute_75 -o "$scratch/new.ptx" calls.cu
sed 's/^\.version.*/.version 7.8/' "$scratch/new.ptx" >"$scratch/calls.ptx"
for sm in 75 90; do
    "$ptxas_11" -arch=sm_$sm -o calls.cuda11.sm_$sm.cubin "$scratch/calls.ptx"
    "$ptxas_12" -arch=sm_$sm -o calls.cuda12.sm_$sm.cubin "$scratch/calls.ptx"
done
for sm in 100a 120; do
    "$ptxas_12" -arch=sm_$sm -o calls.cuda12.sm_$sm.cubin "$scratch/calls.ptx"
done

archs="-gencode arch=compute_75,code=sm_75 -gencode arch=compute_90,code=sm_90 -gencode arch=compute_120,code=[sm_120,compute_120]"
nvcc $archs -fatbin -compress-mode=none -o axpy.raw.fatbin axpy.cu
nvcc $archs -fatbin -compress-mode=speed -Xfatbin -compress-all -o axpy.lz4.fatbin axpy.cu
nvcc $archs -fatbin -compress-mode=size -o axpy.zstd.fatbin axpy.cu
every=
for sm in 75 80 86 89 90 100 103 120; do every="$every -gencode arch=compute_$sm,code=sm_$sm"; done
nvcc $every -fatbin -compress-mode=size -o timers.fatbin timers.cu
nvcc $archs -dc -compress-mode=size -o hop.o hop.cu
nvcc $archs -c -Xcompiler -fPIC -compress-mode=size -o "$scratch/axpy.o" axpy.cu
cc -shared -nostdlib -s -o axpy.so "$scratch/axpy.o"
rm -r "$scratch"
