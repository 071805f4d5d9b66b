#include "textflag.h"

// Each function goes over the k offsets of at (R8 on), CX of them left, with the
// element's address in DX and the bytes of an element in R9.

// func readAVX2(base unsafe.Pointer, at *offsets, k, bytes int, v uint64) uint64
TEXT ·readAVX2(SB), NOSPLIT, $0-48
	MOVQ  base+0(FP), SI
	MOVQ  at+8(FP), R8
	MOVQ  k+16(FP), CX
	MOVQ  bytes+24(FP), R9
	MOVQ  v+32(FP), AX
	VPXOR Y0, Y0, Y0
	VPXOR Y1, Y1, Y1
	VPXOR Y2, Y2, Y2
	VPXOR Y3, Y3, Y3
	TESTQ CX, CX
	JZ    done
	CMPQ  R9, $64
	JLT   one
	JEQ   two
	CMPQ  R9, $96
	JEQ   three

four:
	MOVQ   (R8), DX
	VPADDQ (SI)(DX*1), Y0, Y0
	VPADDQ 32(SI)(DX*1), Y1, Y1
	VPADDQ 64(SI)(DX*1), Y2, Y2
	VPADDQ 96(SI)(DX*1), Y3, Y3
	ADDQ   $8, R8
	DECQ   CX
	JNZ    four
	JMP    done

three:
	MOVQ   (R8), DX
	VPADDQ (SI)(DX*1), Y0, Y0
	VPADDQ 32(SI)(DX*1), Y1, Y1
	VPADDQ 64(SI)(DX*1), Y2, Y2
	ADDQ   $8, R8
	DECQ   CX
	JNZ    three
	JMP    done

two:
	MOVQ   (R8), DX
	VPADDQ (SI)(DX*1), Y0, Y0
	VPADDQ 32(SI)(DX*1), Y1, Y1
	ADDQ   $8, R8
	DECQ   CX
	JNZ    two
	JMP    done

one:
	MOVQ   (R8), DX
	VPADDQ (SI)(DX*1), Y0, Y0
	ADDQ   $8, R8
	DECQ   CX
	JNZ    one

done:
	VPADDQ       Y1, Y0, Y0
	VPADDQ       Y3, Y2, Y2
	VPADDQ       Y2, Y0, Y0
	VEXTRACTI128 $1, Y0, X1
	VPADDQ       X1, X0, X0
	VPSRLDQ      $8, X0, X1
	VPADDQ       X1, X0, X0
	VMOVQ        X0, DX
	ADDQ         DX, AX
	VZEROUPPER
	MOVQ         AX, ret+40(FP)
	RET

// func writeAVX2(base unsafe.Pointer, at *offsets, k, bytes int, v uint64) uint64
TEXT ·writeAVX2(SB), NOSPLIT, $0-48
	MOVQ         base+0(FP), SI
	MOVQ         at+8(FP), R8
	MOVQ         k+16(FP), CX
	MOVQ         bytes+24(FP), R9
	MOVQ         v+32(FP), AX
	VMOVQ        AX, X0
	VPBROADCASTQ X0, Y0
	TESTQ        CX, CX
	JZ           done
	CMPQ         R9, $64
	JLT          one
	JEQ          two
	CMPQ         R9, $96
	JEQ          three

four:
	MOVQ    (R8), DX
	VMOVDQU Y0, (SI)(DX*1)
	VMOVDQU Y0, 32(SI)(DX*1)
	VMOVDQU Y0, 64(SI)(DX*1)
	VMOVDQU Y0, 96(SI)(DX*1)
	ADDQ    $8, R8
	DECQ    CX
	JNZ     four
	JMP     done

three:
	MOVQ    (R8), DX
	VMOVDQU Y0, (SI)(DX*1)
	VMOVDQU Y0, 32(SI)(DX*1)
	VMOVDQU Y0, 64(SI)(DX*1)
	ADDQ    $8, R8
	DECQ    CX
	JNZ     three
	JMP     done

two:
	MOVQ    (R8), DX
	VMOVDQU Y0, (SI)(DX*1)
	VMOVDQU Y0, 32(SI)(DX*1)
	ADDQ    $8, R8
	DECQ    CX
	JNZ     two
	JMP     done

one:
	MOVQ    (R8), DX
	VMOVDQU Y0, (SI)(DX*1)
	ADDQ    $8, R8
	DECQ    CX
	JNZ     one

done:
	VZEROUPPER
	MOVQ AX, ret+40(FP)
	RET

// func readAVX512(base unsafe.Pointer, at *offsets, k, bytes int, v uint64) uint64
TEXT ·readAVX512(SB), NOSPLIT, $0-48
	MOVQ   base+0(FP), SI
	MOVQ   at+8(FP), R8
	MOVQ   k+16(FP), CX
	MOVQ   bytes+24(FP), R9
	MOVQ   v+32(FP), AX
	VPXORQ Z0, Z0, Z0
	VPXORQ Z1, Z1, Z1
	TESTQ  CX, CX
	JZ     done
	CMPQ   R9, $64
	JEQ    one

two:
	MOVQ   (R8), DX
	VPADDQ (SI)(DX*1), Z0, Z0
	VPADDQ 64(SI)(DX*1), Z1, Z1
	ADDQ   $8, R8
	DECQ   CX
	JNZ    two
	JMP    done

one:
	MOVQ   (R8), DX
	VPADDQ (SI)(DX*1), Z0, Z0
	ADDQ   $8, R8
	DECQ   CX
	JNZ    one

done:
	VPADDQ        Z1, Z0, Z0
	VEXTRACTI64X4 $1, Z0, Y1
	VPADDQ        Y1, Y0, Y0
	VEXTRACTI128  $1, Y0, X1
	VPADDQ        X1, X0, X0
	VPSRLDQ       $8, X0, X1
	VPADDQ        X1, X0, X0
	VMOVQ         X0, DX
	ADDQ          DX, AX
	VZEROUPPER
	MOVQ          AX, ret+40(FP)
	RET

// func writeAVX512(base unsafe.Pointer, at *offsets, k, bytes int, v uint64) uint64
TEXT ·writeAVX512(SB), NOSPLIT, $0-48
	MOVQ         base+0(FP), SI
	MOVQ         at+8(FP), R8
	MOVQ         k+16(FP), CX
	MOVQ         bytes+24(FP), R9
	MOVQ         v+32(FP), AX
	VPBROADCASTQ AX, Z0
	TESTQ        CX, CX
	JZ           done
	CMPQ         R9, $64
	JEQ          one

two:
	MOVQ      (R8), DX
	VMOVDQU64 Z0, (SI)(DX*1)
	VMOVDQU64 Z0, 64(SI)(DX*1)
	ADDQ      $8, R8
	DECQ      CX
	JNZ       two
	JMP       done

one:
	MOVQ      (R8), DX
	VMOVDQU64 Z0, (SI)(DX*1)
	ADDQ      $8, R8
	DECQ      CX
	JNZ       one

done:
	VZEROUPPER
	MOVQ AX, ret+40(FP)
	RET
