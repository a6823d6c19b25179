"""The uniform datapath: one value for the warp, in UR and UP registers; and what crosses to and from it."""

# fmt: off
TABLE = """
# mnemonic | writes     | reads          | effects | meaning

# floating point, sm_120 on
UF2F       | f64_to     | f64_from       |         | d = a in another floating-point format
UF2FP      | 1          |                |         | d = a and b in half precision, packed
UF2I       | int64      | f64            |         | d = a as an integer
UF2IP      | 1          |                |         | d = a and b as bytes, packed onto c
UFADD      | 1          |                |         | d = a + b
UFFMA      | 1          |                |         | d = a * b + c
UFHADD     | 1          |                |         | d = half a + single b
UFHFMA     | 1          |                |         | d = half a * half b + single c
UFMNMX     | 1 p?       |                |         | d = p ? min(a, b) : max(a, b)
UFMUL      | 1          |                |         | d = a * b
UFRND      | f64        | f64            |         | d = a rounded to an integral value
UFSEL      | 1          |                |         | d = p ? a : b
UFSET      | 1          |                |         | d = (a cmp b) op p as a mask or 1.0
UFSETP     | p p        |                |         | p, q = (a cmp b) op r, not (a cmp b) op r
UI2F       | f64        | int64          |         | d = a as a floating-point number
UI2FP      | 1          |                |         | d = a as a single, in the integer pipe
UI2I       | 1          |                |         | d = a saturated to fewer bits
UI2IP      | 1          |                |         | d = a and b saturated to fewer bits, packed onto c

# integer
UBMSK      | 1          |                |         | d = b ones from bit a on
UBREV      | 1          |                |         | d = a with its bits reversed
UCLEA      | 2 p?       | 2 1            |         | d = address of a constant-bank entry
UFLO       | 1 p?       |                |         | d = place of the leading one of a
UIABS      | 1          |                |         | d = |a|
UIADD3     | size p? p? | size size size |         | d = a + b + c, carries to p and q; .X adds the carries r, s
UIMAD      | 1 p?       |                |         | d = a * b + c, low half
UIMAD.HI   | 1 p?       | 1 1 2          |         | d = a * b + c, high half
UIMAD.WIDE | 2 p?       | 1 1 2          |         | d = a * b + c, 64 bits
UIMNMX     | p? p? size | size size      |         | d = minimum or maximum of a, b
UISETP     | p p        | size size      |         | p, q = (a cmp b) op r; .EX goes on from the low words
ULEA       | 1 p?       |                |         | d = (a << n) + b
ULOP3      | p? 1       |                |         | d = any function of the bits of a, b, c; p = d is not 0
UPOPC      | 1          |                |         | d = number of ones of a
UPRMT      | 1          |                |         | d = bytes of a and c chosen by b
USGXT      | 1          |                |         | d = a sign-extended from bit b
USHF       | 1          |                |         | d = word of the pair a, c shifted by b
UVIADD     | 1          |                |         | d = a + b, one, two or four lanes
UVIMNMX    | 1 p? p?    |                |         | d = minimum or maximum of a, b

# moves and predicates
UMOV       | size       | size           |         | d = a
UP2UR      | 1          |                |         | d = byte of a replaced by the predicates
UPLOP3     | p p        |                |         | p, q = any two functions of three predicates
UR2UP      | 1          |                |         | predicates chosen by the mask b = bits of a
USEL       | size       | size size      |         | d = p ? a : b

# between the datapaths
CREDUX     | 1          |                | warp    | d = minimum or maximum of a over the warp
CS2UR      | special    |                | clock   | d = special register
R2UR       | p? 1       |                | warp    | d = a of the first active lane
REDUX      | 1          |                | warp    | d = sum, minimum, maximum or bits of a over the warp
S2UR       | 1          |                | clock   | d = special register
VOTEU      | 1? p       |                | warp    | d, p = lanes where q holds; all, any, equal
"""
# fmt: on
