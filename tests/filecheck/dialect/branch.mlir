// RUN: sassir-opt %s -t sass | filecheck %s

// Blocks lie in memory in the order of the text. A branch passes values to the arguments of its target; a loop counter is
// one. `sass.next` goes on to the block behind and is no instruction.

builtin.module attributes {sass.arch = "sm_90"} {
  sass.kernel @k {
  ^entry(%n: !sass.r<R4>):
    %zero = sass.mov "=R, RZ"() : -> R0
    sass.next ^loop(%zero : R0)
  ^loop(%i: !sass.r<R0>):
    %next = sass.iadd3 "=R, $R, 0x1, RZ"(%i) : R0 -> R0
    %more = sass.isetp<"LT.AND"> "=P, PT, $R, $R, PT"(%next, %n) : R0 R4 -> P0
    sass.bra "^"() if %more ^loop(%next : R0), ^out : P0
  ^out:
    sass.exit ""()
  }
}

// CHECK: MOV R0, RZ ;
// CHECK-NEXT: [[LOOP:\.L\d+]]:
// CHECK-NEXT: IADD3 R0, R0, 0x1, RZ ;
// CHECK-NEXT: ISETP.LT.AND P0, PT, R0, R4, PT ;
// CHECK-NEXT: @P0 BRA `([[LOOP]]) ;
// CHECK-NEXT: EXIT ;
