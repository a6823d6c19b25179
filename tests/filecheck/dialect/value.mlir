// RUN: sassir-opt %s | filecheck %s
// RUN: sassir-opt %s -t sass | filecheck %s --check-prefix SASS

// A value is one 32-bit register; its type says which. Writing R2 twice makes two values.

builtin.module attributes {sass.arch = "sm_90"} {
  sass.kernel @k {
    %a = sass.mov "=R, 0x1"() : -> R2
    %b = sass.iadd3 "=R, $R, 0x1, RZ"(%a) : R2 -> R2
    sass.exit ""()
  }
}

// CHECK:      %[[A:\w+]] = sass.mov "=R, 0x1"() : -> R2
// CHECK-NEXT: %[[B:\w+]] = sass.iadd3 "=R, $R, 0x1, RZ"(%[[A]]) : R2 -> R2

// SASS:      MOV R2, 0x1 ;
// SASS-NEXT: IADD3 R2, R2, 0x1, RZ ;
