"""The pipe, the latency classes and the queues of every instruction.

A row is one kind of instruction: the pipe it issues to, the classes of its results and of its operands (`classes`), what is late, its
queues, and the mnemonics. A mnemonic with modifiers stands for instructions that have all of them. Class lists go by operand
(`factor factor addend`) and, after a slash, by register of a group (`low/high`); the last class holds for all further ones.
Pipes have the names of Nsight Compute.

Late: `w` a result comes at a time that only the write scoreboard tells; `r` operands in general registers, and `u` those in uniform
registers, are read after issue, which the read scoreboard tells; `p` predicate results are there when operands have been read: the
read scoreboard tells that too; `g` results belong to the warpgroup until WARPGROUP.DEPBAR. All other operands are read at issue.

Queues: instructions of one queue read their operands in order; after a slash, the queue that returns results in order. So the
scoreboard of a younger instruction covers the older ones, and a younger one may overwrite what an older one reads (or writes).
Evidence: ptxas relies on it, 30,000 times in 1.3 million instructions of sm_90 (which pairs: docs/machine.md).
"""

# fmt: off
TABLE = """
# pipe    | writes         | reads                 | late  | queue      | instructions

# vector arithmetic, fixed latency
alu       | alu            | alu                   |       |            | BMSK F2FP F2IP I2FP I2I I2IP IABS IADD3 LEA LOP3 PLOP3 PRMT
alu       | alu            | alu                   |       |            | R2P SGXT SHF VABSDIFF VABSDIFF4
alu       | alu.b          | alu.b                 |       |            | CS2R.32 CSMTEST FMNMX FMNMX3 FSEL FSET FSETP IADD IMNMX
alu       | alu.b          | alu.b                 |       |            | ISETP MOV P2R SEL VHMNMX VIADDMNMX VIMNMX VIMNMX3
alu       | alu64/alu64.hi | alu64                 |       |            | IADD.64 IMNMX.64 ISETP.64 MOV.64 MOV64IUR SEL.64
alu       | alu.b          | vote                  |       |            | VOTE
fma       | fma            | fma                   |       |            | FADD FADD2 FFMA FFMA2 FHADD FHFMA FMUL FMUL2 FSWZADD IDP
fma       | fma            | fma                   |       |            | IMAD IMUL VIADD
fma       | fma            | fma fma fma/wide.hi   |       |            | IMAD.HI
fma       | wide/wide.hi   | wide wide fma/wide.hi |       |            | IMAD.WIDE IMUL.WIDE
fp16      | fp16           | fp16                  |       |            | HADD2 HFMA2 HMUL2 QADD4 QFMA4 QMUL4
fp16      | fp16.alu       | fp16.alu              |       |            | HMNMX2 HSET2 HSETP2
fp16      | fp16.f32       | fp16.f32              |       |            | HADD2.F32
fp64      | hfma2.mma      | hfma2.mma             |       |            | HFMA2.MMA
fp64      | fp64           | fp64                  |       |            | DADD DFMA DMUL DSETP
dispatch  | disp64         | alu                   |       |            | CS2R LEPC
dispatch  |                | alu                   |       |            | NOP PMTRIG

# matrices
tensor    | hmma.1         | mma.1                 |       |            | HMMA.1684 HMMA.1688 HMMA.884 QMMA.16816
tensor    | hmma.2         | mma.2                 |       |            | HMMA HMMA.1688.TF32 HMMA.1688.SP HMMA.1684.SP OMMA QMMA
tensor    | imma.8         | mma.1                 |       |            | BMMA.88128 IMMA.8816 IMMA.8832
tensor    | imma.1         | mma.1                 |       |            | BMMA.168128 IMMA.16816 IMMA.16832.S4 IMMA.16832.U4
tensor    | imma.2         | mma.2                 |       |            | BMMA IMMA
tensor    | dmma           | dmma                  | w r   |            | DMMA
tensor    | dmma.2         | dmma                  | w r   |            | DMMA.16x8x4 DMMA.16x8x8 DMMA.16x8x16
tensor    | late           | late                  | g     |            | BGMMA HGMMA IGMMA QGMMA
tensor    |                | late                  |       |            | WARPGROUP WARPGROUPSET
tensor    | late           | memory                | w r u |            | LDTM STTM UTCATOMSWS UTCBAR UTCCP UTCHMMA UTCIMMA UTCOMMA
tensor    | late           | memory                | w r u |            | UTCQMMA UTCSHIFT UVIRTCOUNT

# vector arithmetic, variable latency
xu        | late           | late                  | w r   | xu/xu      | BREV F2F F2I FLO FRND I2F MUFU POPC
xu        | late           | late                  | w r   | xu64/xu64  | F2F.F64 F2I.F64 F2I.S64 F2I.U64 FRND.F64 I2F.F64 I2F.S64
xu        | late           | late                  | w r   | xu64/xu64  | I2F.U64
xu        | late           | late                  | w r   |            | CLMAD FCHK MATCH REDUX
xu        | r2ur           | late                  |       |            | CREDUX

# memory
lsu       | late           | memory                | w r   | lsu/shared | LDS LDSM SHFL
lsu       | late           | memory                | w r   | lsu/atoms  | ATOMS
lsu       | late           | memory                | w r p | lsu        | ATOM
lsu       | late           | memory                | w r   | lsu        | ATOMG LD LDG LDG.256 LDL RED REDG ST STG STG.256 STL STS STSM
lsu       | late           | memory                | w r u | lsu        | ARRIVES LDGSTS
lsu       | late           | memory                | w r u |            | CCTL CCTLL CCTLT GETLMEMBASE LDGMC MOVM QSPC REDAS
lsu       | late           | memory                | w r u |            | SETLMEMBASE STAS
lsu       | late           | late                  | w r u | lsu        | SYNCS
lsu       | late           | late                  | w r   |            | LDC
lsu       | late           | late                  | w r   |            | AL2P ALD AST IPA ISBERD ISBEWR LDTRAM OUT PIXLD
tex       | late           | late                  | w r   | tex/tex    | FOOTPRINT TEX TLD TLD4 TMML TXD TXQ
tex       | late           | late                  | w r   |            | SUATOM SULD SUQUERY SURED SUST
tma       | late           | memory                | w r u |            | UBLKCP UBLKPF UBLKRED UGETNEXTWORKID UMEMSETS UREDGR USTGR
tma       | late           | memory                | w r u |            | UTMACCTL UTMALDG UTMAPF UTMAREDG UTMASTG
adu       | late           | memory                | w r   | adu/adu    | B2R
adu       | late           | memory                | w r   |            | BAR S2R
adu       |                | memory                |       |            | ERRBAR FENCE LDGDEPBAR MEMBAR UCGABAR_ARV UCGABAR_WAIT
adu       |                | memory                |       |            | UTMACMDFLUSH

# uniform datapath
uniform   | udp            | udp                   |       |            | UBMSK UBREV UCLEA UFLO UIABS UIADD3 UIMAD UIMAD.HI
uniform   | udp            | udp                   |       |            | UIMAD.WIDE UIMNMX UISETP ULEA ULOP3 UP2UR UPLOP3 UPOPC
uniform   | udp            | udp                   |       |            | UPRMT UR2UP USEL USGXT USHF UVIADD UVIMNMX
uniform   | udp            | udp                   |       |            | UF2F UF2FP UF2I UF2IP UFADD UFFMA UFHADD UFHFMA UFMNMX
uniform   | udp            | udp                   |       |            | UFMUL UFRND UFSEL UFSET UFSETP UI2F UI2FP UI2I UI2IP
uniform   | umov           | umov                  |       |            | ELECT ULEPC UMOV VOTEU
uniform   | r2ur           | udp                   |       |            | CS2UR
uniform   | late           | uldc                  | w     |            | LDCU LDCU.256 LDCU.TEXUNPACK
uniform   | uldc           | uldc                  |       |            | ULDC
uniform   | late           | memory                | w r   | s2ur/s2ur  | S2UR
alu       | r2ur           | late                  |       |            | R2UR

# control
cbu       | late           | branch                | w r   |            | BMOV
cbu       | late           | branch                |       |            | BPT BRA BREAK BRX BRXU BSSY BSYNC CALL DEPBAR ENDCOLLECTIVE
cbu       | late           | branch                |       |            | EXIT JMP JMX JMXU KILL NANOSLEEP RET RPCMOV WARPSYNC YIELD
cbu       | late           | branch                |       |            | ACQBULK ACQSHMINIT CGAERRBAR PREEXIT SETCTAID USETMAXREG
cbu       | late           | branch                |       |            | USETSHMSZ
"""

_BEFORE_SM_90 = """
fp64      | fp64           | fp64                  | w r   | fp64/fp64  | DADD DFMA DMUL DSETP
alu       | late           | late                  | w r   |            | R2UR
"""
_FEW_FP64_UNITS = """
fp64      | fp64           | fp64                  | w r   | fp64/fp64  | DADD DFMA DMUL DSETP
tensor    | late           | late                  | w r   |            | DMMA
"""

OVERRIDES = {
    "sm_75": _BEFORE_SM_90 + """
tensor    | hmma.1         | mma.1                 | w r   | mma/mma    | HMMA HMMA.1688 HMMA.884
tensor    | imma.8         | mma.1                 | w r   | mma/mma    | BMMA BMMA.88128 IMMA IMMA.8816 IMMA.8832
cbu       | late           | branch                |       |            | BMOV
""",
    "sm_80": _BEFORE_SM_90,
    "sm_86": _BEFORE_SM_90,
    "sm_89": _BEFORE_SM_90,
    "sm_90": "",
    "sm_100": "",
    "sm_103": _FEW_FP64_UNITS,
    "sm_120": _FEW_FP64_UNITS + """
uniform   | udp            | udp                   |       |            | CS2UR
""",
}
"""Rows that are different on one architecture. In all else sm_103 is as sm_100, whose latencies it has but for FP64: it has fewer units for
that, and ptxas 13 gives it scoreboards there."""
SAME = {"sm_101": "sm_103", "sm_110": "sm_103"}
"""Architectures without rows or latencies of their own, and whose they share."""
# fmt: on
