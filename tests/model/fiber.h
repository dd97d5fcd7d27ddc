/* SPDX-License-Identifier: MIT */
/*
 * Fibers: a stack and a saved stack pointer, switched without system calls.
 */
#ifndef FX_MODEL_FIBER_H
#define FX_MODEL_FIBER_H

#define FX_FIBER_STACK_BYTES (64u << 10)

struct fx_fiber {
	void *sp;
	char *stack; /* lowest address; below it lies a guard page */
};

/* Return: 0 or -errno.  The stack is kept for every later reset. */
int fx_fiber_init(struct fx_fiber *f);
void fx_fiber_fini(struct fx_fiber *f);
/* The next switch to @f calls @entry, which must never return. */
void fx_fiber_reset(struct fx_fiber *f, void (*entry)(void));
/* Save the caller in *@save, continue at @to. */
void fx_fiber_switch(void **save, void *to);

#endif /* FX_MODEL_FIBER_H */
