"""The attributes of nv.info (NVIDIA's EIATTR), one row each: number, name, what the payload is.

Names: printed by nvdisasm 13.5 for every number; those it leaves out (SW…) as cuobjdump 13.5 prints them. Payloads: seen in
cubins of CUDA 11.8 to 13.5 for sm_75 to sm_120; OTHER where none was seen.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class Payload(Enum):
    """What the bytes of an attribute are."""

    FLAG = "presence is all it says"
    NUMBER = "one number of 1, 2 or 4 bytes"
    NUMBERS = "u32 numbers"
    DIMENSIONS = "u32 x, y, z"
    SYMBOLS = "u32 symbol indices"
    SYMBOL_VALUE = "u32 symbol index, u32 value"
    PARAMETER = "u32 index, u16 ordinal, u16 offset, u32 size, constant bank, space and alignment of what it points to"
    PARAMETER_BANK = "u32 symbol index of the bank, u16 offset, u16 size"
    OFFSETS = "u32 code offsets"
    BRANCH_TARGETS = "per indirect branch: u32 its code offset, u32 0, u32 n, n u32 code offsets"
    BARRIERS = "per mbarrier instruction: u32 code offset, u32 R of its address, u32 shared memory offset, u16 kind, u8 UR of its address"
    OFFSET_VALUE = "pairs: u32 code offset, u32 value"
    VALUE_OFFSET = "pairs: u32 value, u32 code offset"
    OFFSETS_OTHER = "code offsets in a form not seen yet"
    OTHER = "not known to hold code offsets; form not seen yet"


class Kind(NamedTuple):
    """One row of the table."""

    id: int
    name: str
    payload: Payload
    instructions: str = ""
    """Mnemonics of the instructions that are listed, as seen on sm_75 to sm_120; empty where no list was seen."""


_P = Payload

EXIT_INSTR_OFFSETS, COOP_GROUP_INSTR_OFFSETS, COOP_GROUP_MASK_REGIDS, INT_WARP_WIDE_INSTR_OFFSETS = 0x1C, 0x28, 0x29, 0x31
INDIRECT_BRANCH_TARGETS, MBARRIER_INSTR_OFFSETS, NUM_BARRIERS = 0x34, 0x39, 0x4C
FRAME_SIZE, MIN_STACK_SIZE, MAX_STACK_SIZE, REGCOUNT = 0x11, 0x12, 0x23, 0x2F

LISTED_WHEN_NEW = (EXIT_INSTR_OFFSETS, INT_WARP_WIDE_INSTR_OFFSETS)
"""The lists that an added instruction has to be in: ptxas lists every EXIT, and the warp-wide instructions that the source did not ask
for (those of combined atomics, for one). The other lists are for what the source asked for."""

RECORDS = {
    Payload.OFFSETS: (1, 0),
    Payload.BARRIERS: (4, 0),
    Payload.OFFSET_VALUE: (2, 0),
    Payload.VALUE_OFFSET: (2, 1),
}
"""Words in a record of the payload, and which of them is the code offset."""

KINDS: dict[int, Kind] = {
    kind.id: kind
    for kind in (
        Kind(0x01, "PAD", _P.FLAG),
        Kind(0x02, "IMAGE_SLOT", _P.OTHER),
        Kind(0x03, "JUMPTABLE_RELOCS", _P.OFFSETS_OTHER),
        Kind(0x04, "CTAIDZ_USED", _P.FLAG),
        Kind(0x05, "MAX_THREADS", _P.DIMENSIONS),
        Kind(0x06, "IMAGE_OFFSET", _P.OTHER),
        Kind(0x07, "IMAGE_SIZE", _P.OTHER),
        Kind(0x08, "TEXTURE_NORMALIZED", _P.OTHER),
        Kind(0x09, "SAMPLER_INIT", _P.OTHER),
        Kind(0x0A, "PARAM_CBANK", _P.PARAMETER_BANK),
        Kind(0x0B, "SMEM_PARAM_OFFSETS", _P.OTHER),
        Kind(0x0C, "CBANK_PARAM_OFFSETS", _P.OTHER),
        Kind(0x0D, "SYNC_STACK", _P.OTHER),
        Kind(0x0E, "TEXID_SAMPID_MAP", _P.OTHER),
        Kind(0x0F, "EXTERNS", _P.SYMBOLS),
        Kind(0x10, "REQNTID", _P.DIMENSIONS),
        Kind(0x11, "FRAME_SIZE", _P.SYMBOL_VALUE),
        Kind(0x12, "MIN_STACK_SIZE", _P.SYMBOL_VALUE),
        Kind(0x13, "SAMPLER_FORCE_UNNORMALIZED", _P.OTHER),
        Kind(0x14, "BINDLESS_IMAGE_OFFSETS", _P.OTHER),
        Kind(0x15, "BINDLESS_TEXTURE_BANK", _P.OTHER),
        Kind(0x16, "BINDLESS_SURFACE_BANK", _P.OTHER),
        Kind(0x17, "KPARAM_INFO", _P.PARAMETER),
        Kind(0x18, "SMEM_PARAM_SIZE", _P.NUMBER),
        Kind(0x19, "CBANK_PARAM_SIZE", _P.NUMBER),
        Kind(0x1A, "QUERY_NUMATTRIB", _P.OTHER),
        Kind(0x1B, "MAXREG_COUNT", _P.NUMBER),
        Kind(0x1C, "EXIT_INSTR_OFFSETS", _P.OFFSETS, "EXIT"),
        Kind(0x1D, "S2RCTAID_INSTR_OFFSETS", _P.OFFSETS),
        Kind(0x1E, "CRS_STACK_SIZE", _P.NUMBER),
        Kind(0x1F, "NEED_CNP_WRAPPER", _P.FLAG),
        Kind(0x20, "NEED_CNP_PATCH", _P.FLAG),
        Kind(0x21, "EXPLICIT_CACHING", _P.FLAG),
        Kind(0x22, "ISTYPEP_USED", _P.FLAG),
        Kind(0x23, "MAX_STACK_SIZE", _P.SYMBOL_VALUE),
        Kind(0x24, "SUQ_USED", _P.FLAG),
        Kind(0x25, "LD_CACHEMOD_INSTR_OFFSETS", _P.OFFSETS),
        Kind(0x26, "LOAD_CACHE_REQUEST", _P.OTHER),
        Kind(0x27, "ATOM_SYS_INSTR_OFFSETS", _P.OFFSETS),
        Kind(0x28, "COOP_GROUP_INSTR_OFFSETS", _P.OFFSETS, "CALL CREDUX MATCH NOP REDUX SHFL VOTE WARPSYNC"),
        Kind(0x29, "COOP_GROUP_MASK_REGIDS", _P.NUMBERS),
        Kind(0x2A, "SW1850030_WAR", _P.OTHER),
        Kind(0x2B, "WMMA_USED", _P.FLAG),
        Kind(0x2C, "HAS_PRE_V10_OBJECT", _P.OTHER),
        Kind(0x2D, "ATOMF16_EMUL_INSTR_OFFSETS", _P.OFFSETS),
        Kind(0x2E, "ATOM16_EMUL_INSTR_REG_MAP", _P.OFFSETS_OTHER),
        Kind(0x2F, "REGCOUNT", _P.SYMBOL_VALUE),
        Kind(0x30, "SW2393858_WAR", _P.OTHER),
        Kind(0x31, "INT_WARP_WIDE_INSTR_OFFSETS", _P.OFFSETS, "MATCH REDUX SHFL VOTE VOTEU"),
        Kind(0x32, "SHARED_SCRATCH", _P.OTHER),
        Kind(0x33, "STATISTICS", _P.OTHER),
        Kind(0x34, "INDIRECT_BRANCH_TARGETS", _P.BRANCH_TARGETS, "BRX BRXU"),
        Kind(0x35, "SW2861232_WAR", _P.FLAG),
        Kind(0x36, "SW_WAR", _P.NUMBER),
        Kind(0x37, "CUDA_API_VERSION", _P.NUMBER),
        Kind(0x38, "NUM_MBARRIERS", _P.NUMBER),
        Kind(0x39, "MBARRIER_INSTR_OFFSETS", _P.BARRIERS, "NOP SYNCS"),
        Kind(0x3A, "COROUTINE_RESUME_ID_OFFSETS", _P.OFFSETS_OTHER),
        Kind(0x3B, "SAM_REGION_STACK_SIZE", _P.OTHER),
        Kind(0x3C, "PER_REG_TARGET_PERF_STATS", _P.OTHER),
        Kind(0x3D, "CTA_PER_CLUSTER", _P.DIMENSIONS),
        Kind(0x3E, "EXPLICIT_CLUSTER", _P.FLAG),
        Kind(0x3F, "MAX_CLUSTER_RANK", _P.NUMBER),
        Kind(0x40, "INSTR_REG_MAP", _P.OFFSETS_OTHER),
        Kind(0x41, "RESERVED_SMEM_USED", _P.FLAG),
        Kind(0x42, "RESERVED_SMEM_0_SIZE", _P.NUMBER),
        Kind(0x43, "UCODE_SECTION_DATA", _P.OTHER),
        Kind(0x44, "UNUSED_LOAD_BYTE_OFFSET", _P.OFFSET_VALUE, "LD LDG LDL LDS"),
        Kind(0x45, "KPARAM_INFO_V2", _P.PARAMETER),
        Kind(0x46, "SYSCALL_OFFSETS", _P.OFFSETS, "CALL"),
        Kind(0x47, "SW_WAR_MEMBAR_SYS_INSTR_OFFSETS", _P.OFFSETS),
        Kind(0x48, "GRAPHICS_GLOBAL_CBANK", _P.OTHER),
        Kind(0x49, "SHADER_TYPE", _P.OTHER),
        Kind(0x4A, "VRC_CTA_INIT_COUNT", _P.NUMBER),
        Kind(0x4B, "TOOLS_PATCH_FUNC", _P.OTHER),
        Kind(0x4C, "NUM_BARRIERS", _P.NUMBER),
        Kind(0x4D, "TEXMODE_INDEPENDENT", _P.FLAG),
        Kind(0x4E, "PERF_STATISTICS", _P.OTHER),
        Kind(0x4F, "AT_ENTRY_FRAGMENTS", _P.OFFSETS_OTHER),
        Kind(0x50, "SPARSE_MMA_MASK", _P.NUMBER),
        Kind(0x51, "TCGEN05_1CTA_USED", _P.FLAG),
        Kind(0x52, "TCGEN05_2CTA_USED", _P.FLAG),
        Kind(0x53, "GEN_ERRBAR_AT_EXIT", _P.FLAG),
        Kind(0x54, "REG_RECONFIG", _P.FLAG),
        Kind(0x55, "ANNOTATIONS", _P.VALUE_OFFSET, "LDL STL"),
        Kind(0x57, "STACK_CANARY_TRAP_OFFSETS", _P.OFFSETS),
        Kind(0x58, "STUB_FUNCTION_KIND", _P.NUMBER),
        Kind(0x59, "LOCAL_CTA_ASYNC_STORE_OFFSETS", _P.OFFSETS),
        Kind(0x5A, "MERCURY_FINALIZER_OPTIONS", _P.OTHER),
        Kind(0x5B, "BLOCKS_ARE_CLUSTERS", _P.FLAG),
        Kind(0x5C, "SANITIZE", _P.OTHER),
        Kind(0x5D, "SYSCALLS_FALLBACK", _P.OTHER),
        Kind(0x5E, "CUDA_REQ", _P.OTHER),
        Kind(0x5F, "UNNAMED_5F", _P.NUMBER),
        Kind(0x61, "RTCORE_ENTRY", _P.OTHER),
        Kind(0x62, "CLUSTER_LAUNCH_CONTROL_USED", _P.FLAG),
        Kind(0x64, "MIN_PER_CTA_MEMORY_SIZE", _P.OTHER),
        Kind(0x65, "IGNOREOOB_CP_ASYNC_BULK_INSTR_OFFSETS", _P.OFFSETS),
        Kind(0x66, "LANGUAGE", _P.NUMBER),
        Kind(0x68, "GRID_ATTRIBUTES", _P.OTHER),
        Kind(0x69, "STACK_OFFSET", _P.OTHER),
        Kind(0x6A, "RT_LIVESTATE_SASS_MAP", _P.OFFSETS_OTHER),
        Kind(0x6B, "UNNAMED_6B", _P.NUMBER),
        Kind(0x6C, "INSTR_OFFSETS", _P.OFFSETS_OTHER),
        Kind(0x6D, "PREEXIT_USED", _P.FLAG),
    )
}
