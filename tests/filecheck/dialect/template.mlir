// RUN: sassir-opt %s -t sass | filecheck %s

// The template is the operand text with holes: `=` writes, `$` reads, `$=` does both, and a number is the width.
// Constants, modifiers and zero registers are text, and stay exactly as they are.

builtin.module attributes {sass.arch = "sm_90"} {
  sass.kernel @k {
  ^entry(%r2: !sass.r<R2>, %r3: !sass.r<R3>, %ur4: !sass.ur<UR4>, %ur5: !sass.ur<UR5>):
    %r8, %r9 = sass.ldg<"E.64"> "=R2, desc[$UR2][$R2.64+0x10]"(%ur4, %ur5, %r2, %r3) : UR4 UR5 R2 R3 -> R8 R9
    %r7, %p0 = sass.iadd3 "=R, =P, -$R.reuse, c[0x0][0x160], RZ"(%r8) : R8 -> R7 P0
    sass.exit ""()
  }
}

// CHECK: LDG.E.64 R8, desc[UR4][R2.64+0x10] ;
// CHECK-NEXT: IADD3 R7, P0, -R8.reuse, c[0x0][0x160], RZ ;
