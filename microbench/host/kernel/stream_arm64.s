#include "textflag.h"

// Each kernel is func(a, b, c unsafe.Pointer, n, reps int64) uint64 with n > 0, a
// multiple of 64, and reps > 0. Four registers of 16 B a step.

TEXT ·readNEON(SB), NOSPLIT, $0-48
	MOVD a+0(FP), R0
	MOVD n+24(FP), R3
	MOVD reps+32(FP), R4
	VEOR V0.B16, V0.B16, V0.B16
	VEOR V1.B16, V1.B16, V1.B16
	VEOR V2.B16, V2.B16, V2.B16
	VEOR V3.B16, V3.B16, V3.B16

lap:
	MOVD R0, R5
	MOVD R3, R8

loop:
	VLD1.P 64(R5), [V4.D2, V5.D2, V6.D2, V7.D2]
	VADD   V4.D2, V0.D2, V0.D2
	VADD   V5.D2, V1.D2, V1.D2
	VADD   V6.D2, V2.D2, V2.D2
	VADD   V7.D2, V3.D2, V3.D2
	SUBS   $64, R8
	BNE    loop
	SUBS   $1, R4
	BNE    lap
	VADD   V1.D2, V0.D2, V0.D2
	VADD   V3.D2, V2.D2, V2.D2
	VADD   V2.D2, V0.D2, V0.D2
	VMOV   V0.D[0], R6
	VMOV   V0.D[1], R7
	ADD    R7, R6
	MOVD   R6, ret+40(FP)
	RET

TEXT ·writeNEON(SB), NOSPLIT, $0-48
	MOVD  a+0(FP), R0
	MOVD  n+24(FP), R3
	MOVD  reps+32(FP), R4
	FMOVD $1.0, F0
	VDUP  V0.D[0], V0.D2
	VMOV  V0.B16, V1.B16
	VMOV  V0.B16, V2.B16
	VMOV  V0.B16, V3.B16

lap:
	MOVD R0, R5
	MOVD R3, R8

loop:
	VST1.P [V0.D2, V1.D2, V2.D2, V3.D2], 64(R5)
	SUBS   $64, R8
	BNE    loop
	SUBS   $1, R4
	BNE    lap
	MOVD   ZR, ret+40(FP)
	RET

TEXT ·copyNEON(SB), NOSPLIT, $0-48
	MOVD a+0(FP), R0
	MOVD b+8(FP), R1
	MOVD n+24(FP), R3
	MOVD reps+32(FP), R4

lap:
	MOVD R0, R5
	MOVD R1, R6
	MOVD R3, R8

loop:
	VLD1.P 64(R6), [V0.D2, V1.D2, V2.D2, V3.D2]
	VST1.P [V0.D2, V1.D2, V2.D2, V3.D2], 64(R5)
	SUBS   $64, R8
	BNE    loop
	SUBS   $1, R4
	BNE    lap
	MOVD   ZR, ret+40(FP)
	RET

TEXT ·triadNEON(SB), NOSPLIT, $0-48
	MOVD  a+0(FP), R0
	MOVD  b+8(FP), R1
	MOVD  c+16(FP), R2
	MOVD  n+24(FP), R3
	MOVD  reps+32(FP), R4
	FMOVD $3.0, F16
	VDUP  V16.D[0], V16.D2

lap:
	MOVD R0, R5
	MOVD R1, R6
	MOVD R2, R7
	MOVD R3, R8

loop:
	VLD1.P 64(R6), [V0.D2, V1.D2, V2.D2, V3.D2]
	VLD1.P 64(R7), [V4.D2, V5.D2, V6.D2, V7.D2]
	VFMLA  V16.D2, V4.D2, V0.D2
	VFMLA  V16.D2, V5.D2, V1.D2
	VFMLA  V16.D2, V6.D2, V2.D2
	VFMLA  V16.D2, V7.D2, V3.D2
	VST1.P [V0.D2, V1.D2, V2.D2, V3.D2], 64(R5)
	SUBS   $64, R8
	BNE    loop
	SUBS   $1, R4
	BNE    lap
	MOVD   ZR, ret+40(FP)
	RET
