#include "textflag.h"

// Each function goes over the k offsets of at (R1 on), R2 of them left, with the
// element's address in R5 and the bytes of an element in R3.

// func readNEON(base unsafe.Pointer, at *offsets, k, bytes int, v uint64) uint64
TEXT ·readNEON(SB), NOSPLIT, $0-48
	MOVD base+0(FP), R0
	MOVD at+8(FP), R1
	MOVD k+16(FP), R2
	MOVD bytes+24(FP), R3
	MOVD v+32(FP), R4
	VEOR V8.B16, V8.B16, V8.B16
	VEOR V9.B16, V9.B16, V9.B16
	VEOR V10.B16, V10.B16, V10.B16
	VEOR V11.B16, V11.B16, V11.B16
	CBZ  R2, done

element:
	MOVD.P 8(R1), R5
	ADD    R0, R5, R5
	MOVD   R3, R6

line:
	VLD1.P 64(R5), [V0.D2, V1.D2, V2.D2, V3.D2]
	VADD   V0.D2, V8.D2, V8.D2
	VADD   V1.D2, V9.D2, V9.D2
	VADD   V2.D2, V10.D2, V10.D2
	VADD   V3.D2, V11.D2, V11.D2
	SUBS   $64, R6, R6
	BNE    line
	SUBS   $1, R2, R2
	BNE    element

done:
	VADD V9.D2, V8.D2, V8.D2
	VADD V11.D2, V10.D2, V10.D2
	VADD V10.D2, V8.D2, V8.D2
	VMOV V8.D[0], R5
	VMOV V8.D[1], R6
	ADD  R5, R4, R4
	ADD  R6, R4, R4
	MOVD R4, ret+40(FP)
	RET

// func writeNEON(base unsafe.Pointer, at *offsets, k, bytes int, v uint64) uint64
TEXT ·writeNEON(SB), NOSPLIT, $0-48
	MOVD base+0(FP), R0
	MOVD at+8(FP), R1
	MOVD k+16(FP), R2
	MOVD bytes+24(FP), R3
	MOVD v+32(FP), R4
	VDUP R4, V0.D2
	VDUP R4, V1.D2
	VDUP R4, V2.D2
	VDUP R4, V3.D2
	CBZ  R2, done

element:
	MOVD.P 8(R1), R5
	ADD    R0, R5, R5
	MOVD   R3, R6

line:
	VST1.P [V0.D2, V1.D2, V2.D2, V3.D2], 64(R5)
	SUBS   $64, R6, R6
	BNE    line
	SUBS   $1, R2, R2
	BNE    element

done:
	MOVD R4, ret+40(FP)
	RET
