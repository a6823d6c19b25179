"""Matrix multiplication: of a warp, of a warpgroup, and of tensor memory; and matrix moves."""

# fmt: off
TABLE = """
# mnemonic   | writes    | reads                            | effects                           | meaning

# one warp: d = a * b + c
BMMA         | c.32      | a.1 b.1 c.32                     | warp                              | bits, population count
DMMA         | c.64      | a.64 b.64 c.64                   | warp                              | double precision
HMMA         | c.32      | a.16 b.16 c.32                   | warp                              | half precision, bfloat16 or tf32
HMMA.884     | 2         | 2 2 2                            | warp                              | half precision, by quarters of the warp
IMMA         | c.32      | a.8 b.8 c.32                     | warp                              | 8-bit or 4-bit integers
MOVM         | transpose |                                  | warp                              | d = a transposed over the warp
OMMA         | c.32      | a.4 b.4 c.32                     | warp                              | 4-bit floats with scales
OMMA.SF.SP   | c.32      | a.4 b.4 c.32 p? 2                | warp                              | 4-bit floats with scales, sparse
QMMA         | c.32      | a.8 b.8 c.32                     | warp                              | 8-bit floats
QMMA.SF.SP   | c.32      | a.8 b.8 c.32 p? 2                | warp                              | 8-bit floats with scales, sparse

# one warpgroup: d = a * b + c, b (and a) in shared memory; d is written later, until WARPGROUP.DEPBAR
BGMMA        | c.32      | 4? [4] c.32                      | shared:r warp pinned              | bits, population count
HGMMA        | c.32      | 4? [4] c.32                      | shared:r warp pinned              | half precision, bfloat16 or tf32
IGMMA        | c.32      | 4? [4] c.32                      | shared:r warp pinned              | 8-bit integers
QGMMA        | c.32      | 4? [4] c.32                      | shared:r warp pinned              | 8-bit floats
WARPGROUP    |           |                                  | warp ordered pinned               | start of, or wait for, matrix operations
WARPGROUPSET |           |                                  | warp ordered pinned               | state of matrix operations

# tensor memory, sm_100
LDTM         | tensor    |                                  | tensor:r warp ordered             | d = tensor memory
STTM         |           | [] tensor                        | tensor:w warp ordered             | tensor memory = b
UTCATOMSWS   | p? pair   | pair pair                        | tensor:rw ordered pinned          | allocation of tensor memory
UTCBAR       |           |                                  | shared:rw ordered pinned          | barrier signalled when products are done
UTCCP        |           | [] [2]                           | shared:r tensor:w ordered pinned  | tensor memory = shared memory
UTCHMMA      |           | [gdesc] [2] [] [] [] lanes       | shared:r tensor:rw ordered pinned | product, half precision, bfloat16, tf32
UTCHMMA.WS   |           | [gdesc] [2] [] [] [] 2           | shared:r tensor:rw ordered pinned | product of halves or tf32, weights kept
UTCIMMA      |           | [gdesc] [2] [] [] [] lanes       | shared:r tensor:rw ordered pinned | product, 8-bit integers
UTCIMMA.WS   |           | [gdesc] [2] [] [] [] 2           | shared:r tensor:rw ordered pinned | product, 8-bit integers, weights kept
UTCOMMA      |           | [gdesc] [2] [] [] [] [2]         | shared:r tensor:rw ordered pinned | product, 4-bit floats with scales
UTCQMMA      |           | [gdesc] [2] [] [] [] [2]? lanes? | shared:r tensor:rw ordered pinned | product, 8-bit floats
UTCQMMA.WS   |           | [gdesc] [2] [] [] [] [2]? 2?     | shared:r tensor:rw ordered pinned | product, 8-bit floats, weights kept
UTCSHIFT     |           |                                  | tensor:rw ordered pinned          | shifts rows of tensor memory
UVIRTCOUNT   |           |                                  | pinned                            | count of virtual resources
"""
# fmt: on
