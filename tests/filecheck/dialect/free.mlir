// RUN: sassir-opt %s | filecheck %s
// RUN: not sassir-opt %s -t sass 2>&1 | filecheck %s --check-prefix ERROR

// A value need not have a register yet; then its type is left out. Code must be allocated before it is written.

builtin.module attributes {sass.arch = "sm_90"} {
  sass.kernel @k {
    %a = sass.mov "=R, 0x1"()
    %b = sass.iadd3 "=R, $R, 0x1, RZ"(%a)
    sass.exit ""()
  }
}

// CHECK: %b = sass.iadd3 "=R, $R, 0x1, RZ"(%a){{$}}
// ERROR: error: kernel k: %a is a !sass.r; allocate registers first
