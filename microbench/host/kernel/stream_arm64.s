#include "textflag.h"

// Each kernel is func(a, b, c unsafe.Pointer, n int64) uint64 with n > 0, a multiple
// of 64. Four registers of 16 B a step.

TEXT ·readNEON(SB), NOSPLIT, $0-40
	MOVD a+0(FP), R0
	MOVD n+24(FP), R3
	VEOR V0.B16, V0.B16, V0.B16
	VEOR V1.B16, V1.B16, V1.B16
	VEOR V2.B16, V2.B16, V2.B16
	VEOR V3.B16, V3.B16, V3.B16

loop:
	VLD1.P 64(R0), [V4.D2, V5.D2, V6.D2, V7.D2]
	VADD   V4.D2, V0.D2, V0.D2
	VADD   V5.D2, V1.D2, V1.D2
	VADD   V6.D2, V2.D2, V2.D2
	VADD   V7.D2, V3.D2, V3.D2
	SUBS   $64, R3
	BNE    loop
	VADD   V1.D2, V0.D2, V0.D2
	VADD   V3.D2, V2.D2, V2.D2
	VADD   V2.D2, V0.D2, V0.D2
	VMOV   V0.D[0], R6
	VMOV   V0.D[1], R7
	ADD    R7, R6
	MOVD   R6, ret+32(FP)
	RET

TEXT ·writeNEON(SB), NOSPLIT, $0-40
	MOVD  a+0(FP), R0
	MOVD  n+24(FP), R3
	FMOVD $1.0, F0
	VDUP  V0.D[0], V0.D2
	VMOV  V0.B16, V1.B16
	VMOV  V0.B16, V2.B16
	VMOV  V0.B16, V3.B16

loop:
	VST1.P [V0.D2, V1.D2, V2.D2, V3.D2], 64(R0)
	SUBS   $64, R3
	BNE    loop
	MOVD   ZR, ret+32(FP)
	RET

TEXT ·copyNEON(SB), NOSPLIT, $0-40
	MOVD a+0(FP), R0
	MOVD b+8(FP), R1
	MOVD n+24(FP), R3

loop:
	VLD1.P 64(R1), [V0.D2, V1.D2, V2.D2, V3.D2]
	VST1.P [V0.D2, V1.D2, V2.D2, V3.D2], 64(R0)
	SUBS   $64, R3
	BNE    loop
	MOVD   ZR, ret+32(FP)
	RET

TEXT ·triadNEON(SB), NOSPLIT, $0-40
	MOVD  a+0(FP), R0
	MOVD  b+8(FP), R1
	MOVD  c+16(FP), R2
	MOVD  n+24(FP), R3
	FMOVD $3.0, F16
	VDUP  V16.D[0], V16.D2

loop:
	VLD1.P 64(R1), [V0.D2, V1.D2, V2.D2, V3.D2]
	VLD1.P 64(R2), [V4.D2, V5.D2, V6.D2, V7.D2]
	VFMLA  V16.D2, V4.D2, V0.D2
	VFMLA  V16.D2, V5.D2, V1.D2
	VFMLA  V16.D2, V6.D2, V2.D2
	VFMLA  V16.D2, V7.D2, V3.D2
	VST1.P [V0.D2, V1.D2, V2.D2, V3.D2], 64(R0)
	SUBS   $64, R3
	BNE    loop
	MOVD   ZR, ret+32(FP)
	RET
