#include "textflag.h"

TEXT ·await(SB), NOSPLIT, $0-12
	MOVD  word+0(FP), R0
	MOVWU value+8(FP), R1
	MOVD  $1000, R3

test:
	LDARW (R0), R2
	CMPW  R1, R2
	BEQ   done
	ISB   $15
	SUBS  $1, R3
	BNE   test

done:
	RET
