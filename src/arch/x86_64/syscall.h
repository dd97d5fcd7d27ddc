/* SPDX-License-Identifier: MIT */
/* Raw system calls of x86-64: results as the kernel gives them, no errno. */
#ifndef FX_ARCH_X86_64_SYSCALL_H
#define FX_ARCH_X86_64_SYSCALL_H

#include <stdint.h>

static inline long fx_arch_syscall(long nr, long a0, long a1, long a2, long a3,
				   long a4, long a5)
{
	register long r10 __asm__("r10") = a3;
	register long r8 __asm__("r8") = a4;
	register long r9 __asm__("r9") = a5;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(nr), "D"(a0), "S"(a1), "d"(a2), "r"(r10),
			   "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return ret;
}

/**
 * fx_arch_syscall_cancellable - a system call that a signal can keep from
 * being entered
 * @cancel: nonzero means: do not enter
 * @nr:     number
 * @args:   six arguments
 *
 * The signal's handler passes its ucontext to fx_arch_cancel_entry(): a
 * thread between the look at @cancel and the SYSCALL instruction (or sent
 * back to that instruction by the kernel for a restart) returns -ECANCELED
 * without entering the kernel. A call that was entered ends as the kernel
 * ends it, usually -EINTR. So there is no moment at which a signal is lost.
 *
 * Return: the call's result, or -ECANCELED if it was not entered.
 */
long fx_arch_syscall_cancellable(const uint32_t *cancel, long nr,
				 const uint64_t *args);

/* In the handler; @ucontext is its third argument. Async-signal-safe. */
void fx_arch_cancel_entry(void *ucontext);

static inline uint64_t fx_arch_cycles(void)
{
	return __builtin_ia32_rdtsc();
}

#endif /* FX_ARCH_X86_64_SYSCALL_H */
