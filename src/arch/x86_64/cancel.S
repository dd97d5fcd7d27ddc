/* SPDX-License-Identifier: MIT */
/*
 * fx_arch_syscall_cancellable(): see arch/x86_64/syscall.h. The handler
 * compares the program counter with the two labels, so nothing may be put
 * between them that is not safe to abandon.
 */
	.text
	.globl	fx_arch_syscall_cancellable
	.hidden	fx_arch_syscall_cancellable
	.type	fx_arch_syscall_cancellable, @function
	.p2align 4
fx_arch_syscall_cancellable:
	.cfi_startproc
	endbr64
	movq	%rdi, %r11
	movq	%rsi, %rax
	movq	%rdx, %rcx
	movq	0(%rcx), %rdi
	movq	8(%rcx), %rsi
	movq	16(%rcx), %rdx
	movq	24(%rcx), %r10
	movq	32(%rcx), %r8
	movq	40(%rcx), %r9
	.globl	fx_arch_cancel_begin
	.hidden	fx_arch_cancel_begin
fx_arch_cancel_begin:
	cmpl	$0, (%r11)
	jne	fx_arch_cancel_abort
	syscall
	.globl	fx_arch_cancel_end
	.hidden	fx_arch_cancel_end
fx_arch_cancel_end:
	ret
	.globl	fx_arch_cancel_abort
	.hidden	fx_arch_cancel_abort
fx_arch_cancel_abort:
	movq	$-125, %rax		/* -ECANCELED */
	ret
	.cfi_endproc
	.size	fx_arch_syscall_cancellable, . - fx_arch_syscall_cancellable

	.section .note.GNU-stack, "", @progbits
