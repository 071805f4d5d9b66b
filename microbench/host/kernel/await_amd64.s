#include "textflag.h"

TEXT ·await(SB), NOSPLIT, $0-12
	MOVQ word+0(FP), AX
	MOVL value+8(FP), CX
	MOVL $1000, DX
	JMP  test

poll:
	PAUSE
	DECL DX
	JEQ  done

test:
	CMPL CX, (AX)
	JNE  poll

done:
	RET
