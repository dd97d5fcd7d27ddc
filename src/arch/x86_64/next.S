/* SPDX-License-Identifier: MIT */
/*
 * The way to the next definition of each name that the library takes the
 * place of. __wrap_NAME jumps through a pointer, which the first call fills in
 * by fx_next_find(); so no order of constructors matters, and all arguments
 * pass, whatever their number. The pointers are in a table for fx_next_all(),
 * too. The list is generated from preload/names.txt.
 */
	.macro NAME name
	.section .rodata.fx_next, "a", @progbits
.Lname_\name:
	.asciz	"\name"
	.section .data.fx_next, "aw", @progbits
	.p2align 3
.Lnext_\name:
	.quad	.Lfirst_\name
	.section fx_next_table, "aw", @progbits
	.p2align 3
	.quad	.Lname_\name, .Lnext_\name
	.text
	.globl	__wrap_\name
	.hidden	__wrap_\name
	.type	__wrap_\name, @function
	.p2align 4
__wrap_\name:
	endbr64
	jmp	*.Lnext_\name(%rip)
	.size	__wrap_\name, . - __wrap_\name
.Lfirst_\name:
	endbr64
	pushq	%rdi
	leaq	.Lname_\name(%rip), %rdi
	pushq	%rsi
	leaq	.Lnext_\name(%rip), %rsi
	jmp	fx_next_first
	.endm

	.text
	/* Name in rdi, pointer in rsi; the first two arguments on the stack. */
	.type	fx_next_first, @function
fx_next_first:
	.cfi_startproc
	.cfi_def_cfa_offset 24
	pushq	%rdx
	.cfi_def_cfa_offset 32
	pushq	%rcx
	.cfi_def_cfa_offset 40
	pushq	%r8
	.cfi_def_cfa_offset 48
	pushq	%r9
	.cfi_def_cfa_offset 56
	pushq	%rax
	.cfi_def_cfa_offset 64
	call	fx_next_find
	movq	%rax, %r11
	popq	%rax
	.cfi_def_cfa_offset 56
	popq	%r9
	.cfi_def_cfa_offset 48
	popq	%r8
	.cfi_def_cfa_offset 40
	popq	%rcx
	.cfi_def_cfa_offset 32
	popq	%rdx
	.cfi_def_cfa_offset 24
	popq	%rsi
	.cfi_def_cfa_offset 16
	popq	%rdi
	.cfi_def_cfa_offset 8
	jmp	*%r11
	.cfi_endproc
	.size	fx_next_first, . - fx_next_first

#include "arch/names.inc"

	.section .note.GNU-stack, "", @progbits
