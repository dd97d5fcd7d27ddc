/* SPDX-License-Identifier: MIT */
/*
 * vfork() returns twice on one stack, so nothing of ours may lie there between
 * the two: the return address is in a register during the call, as the C
 * library has it, and preload/process.c is called before and, in the parent,
 * after.
 */
#define NR_VFORK 58

	.text
	.globl	vfork
	.type	vfork, @function
	.p2align 4
vfork:
	.cfi_startproc
	endbr64
	subq	$8, %rsp
	.cfi_def_cfa_offset 16
	call	fx_before_vfork
	addq	$8, %rsp
	.cfi_def_cfa_offset 8
	popq	%rdi
	.cfi_def_cfa_offset 0
	.cfi_register rip, rdi
	movl	$NR_VFORK, %eax
	syscall
	pushq	%rdi
	.cfi_def_cfa_offset 8
	.cfi_offset rip, -8
	testl	%eax, %eax
	je	1f
	movslq	%eax, %rdi
	pushq	%rdi
	.cfi_def_cfa_offset 16
	call	fx_after_vfork
	popq	%rax
	.cfi_def_cfa_offset 8
	cmpq	$-4095, %rax
	jae	2f
1:	ret
2:	/* errno */
	pushq	%rax
	.cfi_def_cfa_offset 16
	call	__errno_location@PLT
	popq	%rcx
	.cfi_def_cfa_offset 8
	negl	%ecx
	movl	%ecx, (%rax)
	movq	$-1, %rax
	ret
	.cfi_endproc
	.size	vfork, . - vfork

	.section .note.GNU-stack, "", @progbits
