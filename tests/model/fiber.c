/* SPDX-License-Identifier: MIT */
/*
 * Fibers for the checker: mmap-ed stacks with a guard page and a switch that
 * saves the callee-saved registers only.  An abandoned fiber is simply reset.
 */
#define _GNU_SOURCE
#include "model/fiber.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#define GUARD_BYTES 4096u

__asm__(".text\n"
	".globl fx_fiber_switch\n"
	".type fx_fiber_switch, @function\n"
	"fx_fiber_switch:\n"
	"	push %rbp\n"
	"	push %rbx\n"
	"	push %r12\n"
	"	push %r13\n"
	"	push %r14\n"
	"	push %r15\n"
	"	mov %rsp, (%rdi)\n"
	"	mov %rsi, %rsp\n"
	"	pop %r15\n"
	"	pop %r14\n"
	"	pop %r13\n"
	"	pop %r12\n"
	"	pop %rbx\n"
	"	pop %rbp\n"
	"	ret\n"
	".size fx_fiber_switch, . - fx_fiber_switch\n");

int fx_fiber_init(struct fx_fiber *f)
{
	char *p = mmap(NULL, GUARD_BYTES + FX_FIBER_STACK_BYTES, PROT_NONE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return -errno;
	if (mprotect(p + GUARD_BYTES, FX_FIBER_STACK_BYTES, PROT_READ | PROT_WRITE)) {
		int ret = -errno;

		munmap(p, GUARD_BYTES + FX_FIBER_STACK_BYTES);
		return ret;
	}
	f->stack = p + GUARD_BYTES;
	return 0;
}

void fx_fiber_fini(struct fx_fiber *f)
{
	munmap(f->stack - GUARD_BYTES, GUARD_BYTES + FX_FIBER_STACK_BYTES);
	f->stack = NULL;
}

void fx_fiber_reset(struct fx_fiber *f, void (*entry)(void))
{
	uint64_t *sp = (uint64_t *)(void *)(f->stack + FX_FIBER_STACK_BYTES) - 8;

	/* Six registers, the entry, and its (absent) return address. */
	memset(sp, 0, 8 * sizeof(*sp));
	sp[6] = (uint64_t)(uintptr_t)entry;
	f->sp = sp;
}
