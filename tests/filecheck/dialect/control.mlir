// RUN: sassir-opt %s -t sass | filecheck %s

// The control code is an attribute; fields with their default are left out.

builtin.module attributes {sass.arch = "sm_90"} {
  sass.kernel @k {
    %r2 = sass.s2r "=R, SR_TID.X"() : -> R2 control<stall=7, write=0>
    %r3 = sass.mov "=R, $R"(%r2) : R2 -> R3 control<stall=4, yield, wait=[0]>
    sass.exit ""() control<stall=5>
  }
}

// CHECK: [B------:R-:W0:-:S07] S2R R2, SR_TID.X ;
// CHECK-NEXT: [B0-----:R-:W-:Y:S04] MOV R3, R2 ;
// CHECK-NEXT: [B------:R-:W-:-:S05] EXIT ;
