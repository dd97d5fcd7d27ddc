/* SPDX-License-Identifier: MIT */
/* The signal side of fx_arch_syscall_cancellable(). */
#include "arch/arch.h"

#include <ucontext.h>

extern const char fx_arch_cancel_begin[], fx_arch_cancel_end[],
	fx_arch_cancel_abort[];

void fx_arch_cancel_entry(void *ucontext)
{
	ucontext_t *uc = ucontext;
	const char *pc = (const char *)uc->uc_mcontext.gregs[REG_RIP];

	/*
	 * At the end label the call has returned and its result counts. The
	 * SYSCALL instruction itself lies before it: not entered, or to be
	 * restarted, which comes to the same.
	 */
	if (pc >= fx_arch_cancel_begin && pc < fx_arch_cancel_end)
		uc->uc_mcontext.gregs[REG_RIP] =
			(greg_t)(uintptr_t)fx_arch_cancel_abort;
}
