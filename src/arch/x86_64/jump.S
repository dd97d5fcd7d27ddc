/* SPDX-License-Identifier: MIT */
/*
 * sigsetjmp() returns twice to its caller, so it is not called but jumped to,
 * after preload/jump.c had its turn. setjmp() saves the mask as well.
 */
	.text
	.globl	__sigsetjmp
	.type	__sigsetjmp, @function
	.p2align 4
__sigsetjmp:
	.cfi_startproc
	endbr64
	testl	%esi, %esi
	je	1f
	pushq	%rdi
	.cfi_def_cfa_offset 16
	pushq	%rsi
	.cfi_def_cfa_offset 24
	subq	$8, %rsp
	.cfi_def_cfa_offset 32
	movl	%esi, %edi
	call	fx_before_setjmp
	addq	$8, %rsp
	.cfi_def_cfa_offset 24
	popq	%rsi
	.cfi_def_cfa_offset 16
	popq	%rdi
	.cfi_def_cfa_offset 8
1:	jmp	__wrap___sigsetjmp
	.cfi_endproc
	.size	__sigsetjmp, . - __sigsetjmp

	.globl	setjmp
	.type	setjmp, @function
	.p2align 4
setjmp:
	.cfi_startproc
	endbr64
	movl	$1, %esi
	jmp	__sigsetjmp
	.cfi_endproc
	.size	setjmp, . - setjmp

	.section .note.GNU-stack, "", @progbits
