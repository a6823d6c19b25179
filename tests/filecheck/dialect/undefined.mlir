// RUN: not sassir-opt %s 2>&1 | filecheck %s

// Errors of the text point at the place.

builtin.module {
  sass.kernel @k {
    %a = sass.mov "=R, $X"() : -> R2
    sass.exit ""()
  }
}

// CHECK: undefined.mlir:7:{{[0-9]+}}
// CHECK-NEXT: %a = sass.mov "=R, $X"() : -> R2
// CHECK-NEXT: ^^^^^^^^
// CHECK-NEXT: a hole of '=R, $X' names no register file; expected $R, =R or $=R (or UR, P, UP, B), then its width
