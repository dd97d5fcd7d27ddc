/* SPDX-License-Identifier: MIT */
/*
 * fx_arch_frame_leave(): see arch/x86_64/frame.h. The kernel finds the frame by
 * the stack pointer, which a handler's return leaves above its first word.
 */
#define NR_RT_SIGRETURN 15

	.text
	.globl	fx_arch_frame_leave
	.hidden	fx_arch_frame_leave
	.type	fx_arch_frame_leave, @function
	.p2align 4
fx_arch_frame_leave:
	.cfi_startproc
	.cfi_undefined rip
	endbr64
	movq	%rdi, %rbx
	leaq	-16(%rdi), %rsp
	movq	%rdx, %rdi
	xorl	%ebp, %ebp
	callq	*%rsi
	movq	%rbx, %rsp
	movl	$NR_RT_SIGRETURN, %eax
	syscall
	ud2
	.cfi_endproc
	.size	fx_arch_frame_leave, . - fx_arch_frame_leave

	.section .note.GNU-stack, "", @progbits
