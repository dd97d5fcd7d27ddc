/* SPDX-License-Identifier: MIT */
/*
 * The context switch; contracts in arch/x86_64/context.h. What a parked stack
 * holds, from its stack pointer up:
 *
 *	 0  mxcsr, x87 control word
 *	 8  r15 r14 r13 r12 rbx rbp
 *	56  where to go on
 *
 * Both stacks have this form at the moment they change places, so one rule
 * for unwinding holds before and after.
 */
#define ARCH_SET_FS 0x1002
#define NR_ARCH_PRCTL 158
#define NR_FUTEX 202
#define FUTEX_WAIT_PRIVATE 128
#define LENT 0
#define HOME 4

	.text
	.globl	fx_arch_switch_raw
	.globl	fx_arch_parked
	.hidden	fx_arch_parked
	.hidden	fx_arch_switch_raw
	.type	fx_arch_switch_raw, @function
	.p2align 4
fx_arch_switch_raw:
	.cfi_startproc
	endbr64
	pushq	%rbp
	.cfi_def_cfa_offset 16
	.cfi_offset rbp, -16
	pushq	%rbx
	.cfi_def_cfa_offset 24
	.cfi_offset rbx, -24
	pushq	%r12
	.cfi_def_cfa_offset 32
	.cfi_offset r12, -32
	pushq	%r13
	.cfi_def_cfa_offset 40
	.cfi_offset r13, -40
	pushq	%r14
	.cfi_def_cfa_offset 48
	.cfi_offset r14, -48
	pushq	%r15
	.cfi_def_cfa_offset 56
	.cfi_offset r15, -56
	subq	$8, %rsp
	.cfi_def_cfa_offset 64
	stmxcsr	0(%rsp)
	fnstcw	4(%rsp)
	movl	0(%rsp), %r8d
	movzwl	4(%rsp), %r9d
	movq	8(%rsi), %rdx
	movq	8(%rdi), %rcx
	movq	%rsp, 0(%rdi)
	movq	0(%rsi), %rsp
	cmpq	%rcx, %rdx
	je	2f
	cmpb	$0, fx_arch_fsgsbase(%rip)
	je	5f
	wrfsbase %rdx
2:	/* Loading these is slow, and they rarely differ. */
	cmpl	0(%rsp), %r8d
	jne	6f
3:	cmpw	4(%rsp), %r9w
	jne	7f
	/* Here a parked stack can be unwound from; see scripts/gdb.py. */
fx_arch_parked:
4:	addq	$8, %rsp
	.cfi_def_cfa_offset 56
	popq	%r15
	.cfi_def_cfa_offset 48
	.cfi_restore r15
	popq	%r14
	.cfi_def_cfa_offset 40
	.cfi_restore r14
	popq	%r13
	.cfi_def_cfa_offset 32
	.cfi_restore r13
	popq	%r12
	.cfi_def_cfa_offset 24
	.cfi_restore r12
	popq	%rbx
	.cfi_def_cfa_offset 16
	.cfi_restore rbx
	popq	%rbp
	.cfi_def_cfa_offset 8
	.cfi_restore rbp
	/*
	 * ret, not a jump: it keeps the processor's stack of return addresses
	 * level, so that what the callers return to is predicted wherever the
	 * task that was left and this one wait in the same place.
	 */
	ret
	.cfi_def_cfa_offset 64
	.cfi_offset rbp, -16
	.cfi_offset rbx, -24
	.cfi_offset r12, -32
	.cfi_offset r13, -40
	.cfi_offset r14, -48
	.cfi_offset r15, -56
5:	movl	$NR_ARCH_PRCTL, %eax
	movl	$ARCH_SET_FS, %edi
	movq	%rdx, %rsi
	syscall
	jmp	2b
6:	ldmxcsr	0(%rsp)
	jmp	3b
7:	fldcw	4(%rsp)
	jmp	4b
	.cfi_endproc
	.size	fx_arch_switch_raw, . - fx_arch_switch_raw

	.globl	fx_arch_lend
	.hidden	fx_arch_lend
	.type	fx_arch_lend, @function
	.p2align 4
fx_arch_lend:
	.cfi_startproc
	endbr64
	pushq	%rbp
	pushq	%rbx
	pushq	%r12
	pushq	%r13
	pushq	%r14
	pushq	%r15
	subq	$8, %rsp
	stmxcsr	0(%rsp)
	fnstcw	4(%rsp)
	movl	0(%rsp), %r8d
	movzwl	4(%rsp), %r9d
	movq	%rdi, %rbx
	movq	%rsi, %r12
	movq	%rsp, 0(%rdi)
	movq	%rdx, %rsp
	.cfi_undefined rip
	movl	$1, LENT(%r12)
1:	cmpl	$0, HOME(%r12)
	jne	2f
	movl	$NR_FUTEX, %eax
	leaq	HOME(%r12), %rdi
	movl	$FUTEX_WAIT_PRIVATE, %esi
	xorl	%edx, %edx
	xorl	%r10d, %r10d
	syscall
	jmp	1b
2:	movl	$0, LENT(%r12)
	movl	$0, HOME(%r12)
	movq	0(%rbx), %rsp
	cmpl	0(%rsp), %r8d
	je	3f
	ldmxcsr	0(%rsp)
3:	cmpw	4(%rsp), %r9w
	je	4f
	fldcw	4(%rsp)
4:	addq	$8, %rsp
	popq	%r15
	popq	%r14
	popq	%r13
	popq	%r12
	popq	%rbx
	popq	%rbp
	popq	%rcx
	jmp	*%rcx
	.globl	fx_arch_lend_end
	.hidden	fx_arch_lend_end
fx_arch_lend_end:
	.cfi_endproc
	.size	fx_arch_lend, . - fx_arch_lend

	/* A first context: entry in r12, its argument in r13. */
	.globl	fx_arch_start
	.hidden	fx_arch_start
	.type	fx_arch_start, @function
	.p2align 4
fx_arch_start:
	.cfi_startproc
	.cfi_undefined rip
	endbr64
	movq	%r13, %rdi
	xorl	%ebp, %ebp
	callq	*%r12
	ud2
	.cfi_endproc
	.size	fx_arch_start, . - fx_arch_start

	.section .note.GNU-stack, "", @progbits
