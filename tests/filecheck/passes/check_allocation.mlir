// RUN: not sassir-opt %s -p sass-check-allocation 2>&1 | filecheck %s

// %a is still needed when %b takes its register.

builtin.module attributes {sass.arch = "sm_90"} {
  sass.kernel @k {
    %a = sass.mov "=R, 0x1"() : -> R2 at 0x0
    %b = sass.mov "=R, 0x2"() : -> R2 at 0x10
    %c = sass.iadd3 "=R, $R, $R, RZ"(%a, %b) : R2 R2 -> R3 at 0x20
    sass.exit ""() at 0x30
  }
}

// CHECK: error: kernel k: `%c = sass.iadd3 {{.*}} at 0x20` reads a value from !sass.r<R2>, which holds another one there
