"""Loads, stores, atomics, barriers in shared memory, asynchronous copies, caches and fences."""

# fmt: off
TABLE = """
# mnemonic     | writes          | reads                   | effects                     | meaning

# constants and special registers
CS2R           | special         |                         | clock                       | d = special register, at a fixed latency
LDC            | size            |                         | constant:r                  | d = c[bank][address]
LDCU           | size            | [2]                     | constant:r                  | d = c[bank][address], uniform
LDCU.256       | mask.hi mask.lo | [2]                     | constant:r                  | d, e = 32 bytes of c[bank][address], uniform
LDCU.TEXUNPACK | unpack          | [2]                     | constant:r                  | d = texture header in c[bank][address]
S2R            | 1               |                         | clock                       | d = special register
ULDC           | size            | [2]                     | constant:r                  | d = c[bank][address], uniform

# loads and stores
LD             | p? size         |                         | generic:r                   | d = generic memory
LDG            | p? size         |                         | global:r                    | d = global memory
LDG.256        | mask.hi mask.lo |                         | global:r                    | d, e = 32 bytes of global memory
LDGMC          | size            |                         | global:rw ordered           | d = reduction over a multicast address
LDL            | size            |                         | local:r                     | d = local memory
LDS            | p? size         |                         | shared:r                    | d = shared memory
LDSM           | matrices        |                         | shared:r warp               | d = matrices of shared memory, over the warp
ST             |                 | [] size                 | generic:w                   | generic memory = b
STAS           |                 | [2] size                | shared:w ordered            | shared memory of another CTA = b, signals
STG            |                 | [] size                 | global:w                    | global memory = b
STG.256        |                 | [] mask.lo mask.hi      | global:w                    | global memory = b, c, 32 bytes
STL            |                 | [] size                 | local:w                     | local memory = b
STS            |                 | [] size                 | shared:w                    | shared memory = b
STSM           |                 | [] matrices             | shared:w warp               | matrices of shared memory = b, over the warp
USTGR          |                 | [2] size                | global:w                    | global memory = b, uniform

# atomics and reductions
ATOM           | p? size         | [] size size            | generic:rw ordered          | d = generic memory, which becomes d op b
ATOMG          | p? size         | [] size size            | global:rw ordered           | d = global memory, which becomes d op b
ATOMS          | p? size?        | [] size size            | shared:rw ordered           | d = shared memory, which becomes d op b
RED            |                 | [] size                 | global:rw ordered           | global memory op= b
REDAS          |                 | [2] size                | shared:rw ordered           | shared memory of another CTA op= b, signals
REDG           |                 | [] size                 | global:rw ordered           | global memory op= b
UREDGR         |                 | [2] size                | global:rw ordered           | global memory op= b, uniform

# barriers in shared memory
ARRIVES        |                 | []                      | shared:rw ordered pinned    | arrives when the copies before are done
SYNCS          | 2?              | [] 2 2                  | shared:rw ordered pinned    | operation on a barrier in shared memory
SYNCS.ARRIVE   | 2               | [] 1                    | shared:rw ordered pinned    | d = state of the barrier, arrives
SYNCS.CAS      | 2               | [] 2 2                  | shared:rw ordered pinned    | d = barrier, which becomes c if it was b
SYNCS.CCTL     |                 | []                      | shared:rw ordered pinned    | cache control of a barrier
SYNCS.EXCH     | 2               | [] 2                    | shared:rw ordered pinned    | d = barrier, which becomes b
SYNCS.LD       | 2               | []                      | shared:r ordered pinned     | d = barrier
SYNCS.PHASECHK | p               | [] 1                    | shared:rw ordered pinned    | p = phase b of the barrier is over

# asynchronous copies
LDGDEPBAR      |                 |                         | ordered pinned              | closes a group of copies
LDGSTS         |                 | [1] []                  | global:r shared:w           | shared memory = global memory
UBLKCP         |                 | [bulk.to] [bulk.from] 1 | global:rw shared:rw ordered | copies a block
UBLKPF         |                 | [2] 1                   | pinned                      | fetches a block into the L2 cache
UBLKRED        |                 | [bulk.to] [bulk.from] 1 | global:rw shared:rw ordered | reduces a block into memory
UTMACCTL       |                 | [2]                     | ordered pinned              | cache control of tensor descriptors
UTMACMDFLUSH   |                 |                         | ordered pinned              | closes a group of tensor stores
UTMALDG        |                 | [dims+2] [2] 1          | global:r shared:w ordered   | shared memory = box of a tensor
UTMAPF         |                 | [dims] [2] 1            | pinned                      | fetches a box of a tensor into the L2 cache
UTMAREDG       |                 | [dims+1] [2] 1          | global:rw shared:r ordered  | box of a tensor op= shared memory
UTMASTG        |                 | [dims+1] [2] 1          | global:w shared:r ordered   | box of a tensor = shared memory

# caches, fences, addresses
CCTL           | p?              |                         | generic:rw ordered pinned   | cache control
CCTLL          |                 |                         | local:rw ordered pinned     | cache control, local memory
CCTLT          |                 |                         | texture:r ordered pinned    | cache control, textures
ERRBAR         |                 |                         | ordered pinned              | waits for error reports of memory
FENCE          |                 |                         | ordered pinned              | orders accesses of different proxies
GETLMEMBASE    | 2               |                         |                             | d = base of local memory
MEMBAR         |                 |                         | ordered pinned              | orders memory accesses
QSPC           | p? 1            |                         |                             | p = address lies in the space named
SETLMEMBASE    |                 | 2                       | ordered pinned              | base of local memory = a
"""
# fmt: on
