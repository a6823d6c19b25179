// RUN: not sassir-opt %s -t sass 2>&1 | filecheck %s

// The bug that every register allocator has once: %a is read after R2 was given to %b.

builtin.module attributes {sass.arch = "sm_90"} {
  sass.kernel @k {
    %a = sass.mov "=R, 0x1"() : -> R2
    %b = sass.mov "=R, 0x2"() : -> R2
    %c = sass.iadd3 "=R, $R, $R, RZ"(%a, %b) : R2 R2 -> R3
    sass.exit ""()
  }
}

// CHECK: error: kernel k: `{{.*}}sass.iadd3{{.*}}` reads a value from !sass.r<R2>, which holds another one there
