/* SPDX-License-Identifier: MIT */
/*
 * Contexts: a stack and a thread pointer (FS base) that a kernel thread can
 * leave and another one take up. The switch keeps what the ABI says a
 * function keeps: callee-saved registers, mxcsr, x87 control word. The x87
 * stack is empty and everything else dead at a function call.
 *
 * The sanitizers keep what they know of a thread in its thread-local memory,
 * so they follow a switch that changes the thread pointer by themselves.
 * fx_arch_switch() tells them of those that do not.
 *
 * (flexsc-osdi10.txt, 4.2: user-level switches on system calls.)
 */
#ifndef FX_ARCH_X86_64_CONTEXT_H
#define FX_ARCH_X86_64_CONTEXT_H

#include "base/types.h"

#if defined(__SANITIZE_ADDRESS__)
#define FX_ARCH_ASAN 1
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#define FX_ARCH_TSAN 1
#include <sanitizer/tsan_interface.h>
#endif

/* For code that runs on a second stack of a thread without telling anybody. */
#define FX_NO_SANITIZE \
	__attribute__((no_sanitize("address"), no_sanitize("thread"), noinline))

/* Key: whoever runs the context, or has taken it up. */
struct fx_arch_context {
	void *sp; /* known to switch.S; while it runs: of its last switch */
	uint64_t tls; /* known to switch.S: the thread pointer */
	const void *stack; /* lowest address; for the sanitizers */
	size_t stack_size;
	void *fake_stack; /* asan */
	void *fiber; /* tsan */
};

/* Can user space set the thread pointer? False is always right. */
extern uint8_t fx_arch_fsgsbase;

/**
 * fx_arch_init - decide how thread pointers are set
 *
 * Context: before there are contexts; idempotent.
 */
void fx_arch_init(void);

/* The calling thread's thread pointer; the first word of glibc's TCB. */
static inline uint64_t fx_arch_thread_pointer(void)
{
	uint64_t tls;

	__asm__("movq %%fs:0, %0" : "=r"(tls));
	return tls;
}

/* Set it, in whatever way this machine allows. Signal handlers. */
void fx_arch_set_thread_pointer(uint64_t tls);

/* Rounding and exceptions as a program begins with. */
void fx_arch_float_default(void);

/**
 * fx_arch_context_here - describe the caller, to switch away from
 *
 * For the calling kernel thread's own stack and thread pointer; sp is filled
 * in by the first switch.
 */
void fx_arch_context_here(struct fx_arch_context *context);

/**
 * fx_arch_context_init - make a context that has not run yet
 * @stack: lowest address; 16-byte aligned
 * @entry: must not return
 * @tls:   thread pointer it is to run with
 *
 * Inherits mxcsr and x87 control word of the caller.
 */
void fx_arch_context_init(struct fx_arch_context *context, void *stack,
			  size_t size, void (*entry)(void *), void *arg,
			  uint64_t tls);
void fx_arch_context_fini(struct fx_arch_context *context);

/*
 * Save the caller in @save and go on at @to; returns when something switches
 * to @save, perhaps on another kernel thread. Nobody may take @save up before
 * the switch is over: publish it from @to. @save and @to may be the same
 * kernel thread's or not; both must be valid, and the context that is left
 * must have @save->tls as its thread pointer. The change of stack and thread
 * pointer is not one step: a signal handler may see the new stack with the
 * old thread pointer (program counter inside fx_arch_switch_raw).
 */
void fx_arch_switch_raw(struct fx_arch_context *save,
			const struct fx_arch_context *to);

#if defined(FX_ARCH_ASAN) || defined(FX_ARCH_TSAN)
void fx_arch_switch(struct fx_arch_context *save,
		    const struct fx_arch_context *to);
#else
#define fx_arch_switch(save, to) fx_arch_switch_raw(save, to)
#endif

/*
 * What a context did before it was left comes before what the next one does,
 * on the same kernel thread. tsan, for which they are two threads, is told of
 * it by any address that both know.
 */
#if defined(FX_ARCH_TSAN)
#define fx_arch_handed_on(p) __tsan_release(p)
#define fx_arch_taken_up(p) __tsan_acquire(p)
#else
#define fx_arch_handed_on(p) ((void)(p))
#define fx_arch_taken_up(p) ((void)(p))
#endif

/* A kernel thread whose stack and thread pointer others run. */
struct fx_arch_lender {
	uint32_t lent; /* set once the context is saved; cleared before */
	uint32_t home; /* futex: set, and woken, to give the context back */
};

/**
 * fx_arch_lend - give the caller's context away until it is sent home
 * @context: where it is saved; its thread pointer is the caller's own
 * @top:     upper end of a small stack, for signals that come meanwhile
 *
 * The kernel thread waits without touching @top: an idle thread costs no page.
 * Order: @lender->lent is stored with release behind the saving; @lender->home
 * is set, with release, when nobody runs the context any more.
 *
 * Returns on whichever kernel thread takes the context up: on its own after
 * `home` was set (both words are 0 then), or another by fx_arch_switch_raw().
 */
void fx_arch_lend(struct fx_arch_context *context,
		  struct fx_arch_lender *lender, void *top);

/* The first thing that @entry of a context does that was not switched to. */
void fx_arch_entered(const struct fx_arch_context *context);

#endif /* FX_ARCH_X86_64_CONTEXT_H */
