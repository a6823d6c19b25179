// RUN: not sassir-opt %s -t sass 2>&1 | filecheck %s

// Where something is not known, the kernel says so, and its instructions must stay in their places.

builtin.module attributes {sass.arch = "sm_90"} {
  sass.kernel @k fixed "FROB.U8 R1, R2 at 0x0 is opaque: the registers of FROB.U8 are not known" {
    sass.nop ""()
    sass.opaque<"FROB.U8"> "R1, R2"() at 0x0
    sass.exit ""() at 0x10
  }
}

// CHECK: error: kernel k: `NOP` moved to 0x0, but the code of this kernel must stay in place: FROB.U8 R1, R2 at 0x0 is opaque
