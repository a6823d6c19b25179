"""Control flow, convergence, and what the lanes of a warp and the warps of a CTA do together."""

# fmt: off
TABLE = """
# mnemonic     | writes | reads   | effects                 | meaning

# branches
BRA            |        |         | branch                  | goes to the target
BRX            |        | p? 2    | indirect                | goes to a + target
BRXU           |        | p? 2    | indirect                | goes to a + target, uniform
CALL           |        | p? 2    | call                    | calls the target
EXIT           |        |         | exit                    | ends the thread
JMP            |        |         | branch                  | goes to the absolute target
JMX            |        | p? 2    | indirect                | goes to the absolute a + target
JMXU           |        | p? 2    | indirect                | goes to the absolute a + target, uniform
KILL           |        |         | exit                    | ends the thread, its pixel is dropped
LEPC           | 2      |         |                         | d = address of the next instruction, or of the target
RET            |        | p? 2    | return                  | goes to a
RPCMOV         | size   | size    | pinned                  | moves to or from the return address
ULEPC          | 2      |         |                         | d = address of the next instruction, or of the target, uniform

# convergence: B registers hold the lanes that are waited for
BMOV           | size   | size    | warp pinned             | moves a convergence register
BMOV.CLEAR     | 1      | 1/rw    | warp pinned             | moves a convergence register and clears it
BREAK          |        | p? 1/rw | converge warp           | takes the lanes out of a
BSSY           |        | p? 1/w  | converge warp           | b = the active lanes, which meet at the target
BSYNC          |        | p? 1    | converge warp           | waits for the lanes of a
ENDCOLLECTIVE  |        |         | converge warp pinned    | ends a collective region
NANOSLEEP      |        |         | warp pinned             | sleeps
WARPSYNC       |        |         | converge warp pinned    | waits for the lanes of a
YIELD          |        |         | converge warp pinned    | lets other lanes go on

# the lanes of a warp
ELECT          | p 1    |         | warp                    | p = this lane is the one elected; d = its number
MATCH          | p? 1   | size    | warp                    | d = lanes with the same a
SHFL           | p? 1   |         | warp                    | d = a of another lane; p = that lane exists
VOTE           | 1? p   |         | warp                    | d, p = lanes where q holds; all, any, equal

# the warps of a CTA, the CTAs of a cluster
ACQBULK        |        |         | ordered pinned          | waits for the grid before
ACQSHMINIT     |        |         | ordered pinned          | waits for the initialisation of shared memory
B2R            | 1 p?   |         | warp pinned             | d = state of a CTA barrier
BAR            |        |         | warp ordered pinned     | CTA barrier
CGAERRBAR      |        |         | ordered pinned          | waits for error reports of the cluster
PREEXIT        |        |         | ordered pinned          | lets the next grid start
SETCTAID       |        | ctaid   | pinned                  | CTA number = a
UCGABAR_ARV    |        |         | warp ordered pinned     | arrives at the cluster barrier
UCGABAR_WAIT   |        |         | warp ordered pinned     | waits at the cluster barrier
UGETNEXTWORKID |        |         | shared:w ordered pinned | asks for another CTA to do
UMEMSETS       |        |         | shared:w ordered pinned | fills shared memory
USETMAXREG     | p?     |         | warp ordered pinned     | number of registers of the warp = a
USETSHMSZ      |        |         | ordered pinned          | size of shared memory = a

# waiting and debugging
BPT            |        |         | trap pinned             | stops for the debugger
DEPBAR         |        |         | ordered pinned          | waits for scoreboards
NOP            |        |         | ordered                 | nothing; ptxas leaves one where __syncwarp stood
PMTRIG         |        |         | pinned                  | triggers a performance counter
"""
# fmt: on
