// RUN: sassir-opt %s -t sass | filecheck %s

// BSSY names a place without going there. Such places are labels; a private one is not part of the file.

builtin.module attributes {sass.arch = "sm_90"} {
  sass.kernel @k {
  ^entry(%p0: !sass.p<P0>):
    %b0 = sass.bssy "=B, ^"() @meet : -> B0
    sass.bra "^"() if %p0 ^skip, ^then : P0
  ^then:
    sass.nop ""()
    sass.next ^skip
  ^skip:
    sass.bsync "$B"(%b0) ^meet : B0
  ^meet:
    sass.label private @meet
    sass.exit ""()
  }
}

// CHECK: BSSY B0, `([[MEET:\.L\d+]]) ;
// CHECK: BSYNC B0 ;
// CHECK-NEXT: [[MEET]]:
// CHECK-NEXT: EXIT ;
