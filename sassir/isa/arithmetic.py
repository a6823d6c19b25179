"""Arithmetic, logic, comparison, conversion and moves of the vector datapath."""

# fmt: off
TABLE = """
# mnemonic | writes     | reads                | effects | meaning

# single precision
FADD       | 1          |                      |         | d = a + b
FADD2      | 2          | packed packed        |         | d = a + b, two singles
FCHK       | p          |                      |         | p = a / b needs the slow path
FFMA       | 1          |                      |         | d = a * b + c
FFMA2      | 2          | packed packed packed |         | d = a * b + c, two singles
FHADD      | 1          |                      |         | d = half a + single b
FHFMA      | 1          |                      |         | d = half a * half b + single c
FMNMX      | 1 p?       |                      |         | d = p ? min(a, b) : max(a, b)
FMNMX3     | 1          |                      |         | d = minimum or maximum of a, b, c
FMUL       | 1          |                      |         | d = a * b
FMUL2      | 2          | packed packed        |         | d = a * b, two singles
FRND       | f64        | f64                  |         | d = a rounded to an integral value
FSEL       | 1          |                      |         | d = p ? a : b
FSET       | 1          |                      |         | d = (a cmp b) op p as a mask or 1.0
FSETP      | p p        |                      |         | p, q = (a cmp b) op r, not (a cmp b) op r
FSWZADD    | 1          |                      | warp    | d = ±a ± b, signs by lane of the quad
MUFU       | 1          |                      |         | d = approximate reciprocal, root, logarithm, power, sine …

# half precision, two in a register
HADD2      | 1          |                      |         | d = a + b
HFMA2      | 1          |                      |         | d = a * b + c
HMNMX2     | 1 p? p?    |                      |         | d = p ? min(a, b) : max(a, b)
HMUL2      | 1          |                      |         | d = a * b
HSET2      | 1          |                      |         | d = (a cmp b) op p as a mask or 1.0
HSETP2     | p p        |                      |         | p, q = (a cmp b) op r for both halves
VHMNMX     | 1          |                      |         | d = minimum or maximum of a, b, c

# four 8-bit floats in a register
QADD4      | 1          |                      |         | d = a + b
QFMA4      | 1          |                      |         | d = a * b + c
QMUL4      | 1          |                      |         | d = a * b

# double precision
CLMAD      | 2          | 2 2 2                |         | d = carry-less a * b + c, low or high 64 bits
DADD       | 2          | 2 2                  |         | d = a + b
DFMA       | 2          | 2 2 2                |         | d = a * b + c
DMUL       | 2          | 2 2                  |         | d = a * b
DSETP      | p p        | 2 2                  |         | p, q = (a cmp b) op r, not (a cmp b) op r

# integer
BMSK       | 1          |                      |         | d = b ones from bit a on
BREV       | 1          |                      |         | d = a with its bits reversed
FLO        | 1 p?       |                      |         | d = place of the leading one of a
IABS       | 1          |                      |         | d = |a|
IADD       | size p?    | size size            |         | d = a + b
IADD3      | 1 p? p?    |                      |         | d = a + b + c, carries to p and q; .X adds the carries r, s
IDP        | 1          |                      |         | d = dot product of the bytes of a and b, + c
IMAD       | 1 p?       |                      |         | d = a * b + c, low half
IMAD.HI    | 1 p?       | 1 1 2                |         | d = a * b + c, high half
IMAD.WIDE  | 2 p?       | 1 1 2                |         | d = a * b + c, 64 bits
IMNMX      | p? p? size | size size            |         | d = p ? min(a, b) : max(a, b)
IMUL       | 1          |                      |         | d = a * b exclusive-or c
IMUL.WIDE  | 2          | 1 1 2                |         | d = a * b exclusive-or c, 64 bits
ISETP      | p p        | size size            |         | p, q = (a cmp b) op r; .EX goes on from the low words
LEA        | 1 p?       |                      |         | d = (a << n) + b
LOP3       | p? 1       |                      |         | d = any function of the bits of a, b, c; p = d is not 0
POPC       | 1          |                      |         | d = number of ones of a
PRMT       | 1          |                      |         | d = bytes of a and c chosen by b
SGXT       | 1          |                      |         | d = a sign-extended from bit b
SHF        | 1          |                      |         | d = word of the pair a, c shifted by b
VABSDIFF   | 1 p?       |                      |         | d = |a - b| + c
VABSDIFF4  | 1 p?       |                      |         | d = |a - b| of four bytes, + c
VIADD      | 1          |                      |         | d = a + b, one or two lanes
VIADDMNMX  | 1 p? p?    |                      |         | d = minimum or maximum of a + b and c
VIMNMX     | 1 p? p?    |                      |         | d = p ? min(a, b) : max(a, b)
VIMNMX3    | 1 p? p?    |                      |         | d = minimum or maximum of a, b, c

# conversion
F2F        | f64_to     | f64_from             |         | d = a in another floating-point format
F2FP       | 1          |                      |         | d = a and b in a narrower format, packed
F2I        | int64      | f64                  |         | d = a as an integer
F2IP       | 1          |                      |         | d = a and b as bytes, packed onto c
I2F        | f64        | int64                |         | d = a as a floating-point number
I2FP       | 1          |                      |         | d = a as a single, in the integer pipe
I2I        | 1          |                      |         | d = a saturated to fewer bits
I2IP       | 1          |                      |         | d = a and b saturated to fewer bits, packed onto c

# moves and predicates
CSMTEST    | p p?       |                      |         | p = clip test of a
MOV        | size       | size                 |         | d = a
MOV64IUR   | 2          | 2                    |         | d = a, 64 bits, uniform or immediate
P2R        | 1          |                      |         | d = byte of a replaced by the predicates
PLOP3      | p p        |                      |         | p, q = any two functions of three predicates
R2P        | 1          |                      |         | predicates chosen by the mask b = bits of a
SEL        | size       | size size            |         | d = p ? a : b
"""
# fmt: on
