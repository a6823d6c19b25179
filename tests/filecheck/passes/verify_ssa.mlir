// RUN: not sassir-opt %s -p sass-verify-ssa 2>&1 | filecheck %s

// A value must be made on every way to its use: %a is not, where the branch is taken.

builtin.module attributes {sass.arch = "sm_90"} {
  sass.kernel @k {
  ^start(%x: !sass.r, %p: !sass.p):
    sass.bra "^"() if %p ^behind, ^arm
  ^arm:
    %a = sass.iadd3 "=R, $R, 0x1, RZ"(%x) at 0x10
    sass.next ^behind
  ^behind:
    sass.sts "[$R], $R"(%x, %a) at 0x20
    sass.exit ""()
  }
}

// CHECK: error: kernel k: `sass.sts "[$R], $R"(%x, %a) at 0x20` uses %a, which is not made on every path to it
