// RUN: sassir-opt %s | filecheck %s
// RUN: not sassir-opt %s -t sass 2>&1 | filecheck %s --check-prefix ERROR

// What the linker fills in: the operand with @ is no number, `link` says what it will be. Only an instruction that was in
// the file can have one, since the relocation is there.

builtin.module attributes {sass.arch = "sm_90"} {
  sass.kernel @k {
    %a = sass.mov "=R, @0x0"() : -> R4 link "ABS32_LO_32 table" control<stall=1>
    sass.exit ""()
  }
}

// CHECK: %a = sass.mov "=R, @0x0"() : -> R4 link "ABS32_LO_32 table" control<stall=1>
// ERROR: error: kernel k: `%a = sass.mov "=R, @0x0"() {{.*}}` is a new instruction; the linker fills only into those that were in the file
