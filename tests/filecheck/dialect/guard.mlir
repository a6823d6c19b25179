// RUN: sassir-opt %s -t sass | filecheck %s

// Threads whose guard fails keep the old value: it is an operand, and shares its register with the result.

builtin.module attributes {sass.arch = "sm_90"} {
  sass.kernel @k {
  ^entry(%p0: !sass.p<P0>, %r1: !sass.r<R1>):
    %r2 = sass.mov "=R, 0x1"() : -> R2
    %r2_1 = sass.mov "=R, $R"(%r1) if %p0 keep (%r2) : R1 P0 R2 -> R2
    %r2_2 = sass.mov "=R, 0x3"() unless %p0 keep (%r2_1) : P0 R2 -> R2
    sass.exit ""()
  }
}

// CHECK: @P0 MOV R2, R1 ;
// CHECK-NEXT: @!P0 MOV R2, 0x3 ;
