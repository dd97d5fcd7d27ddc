/* SPDX-License-Identifier: MIT */
/* Copying signal frames; leaving them is in frame.S. */
#include "arch/x86_64/frame.h"

#include "arch/x86_64/context.h"

#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#else
#define RUNNING_ON_VALGRIND 0
#endif

uintptr_t fx_arch_interrupted_sp(const ucontext_t *context)
{
	return (uintptr_t)context->uc_mcontext.gregs[REG_RSP];
}

bool fx_arch_frames_move(void)
{
	return !RUNNING_ON_VALGRIND;
}

/* A sanitizer may hold that parts of either stack are nobody's. */
FX_NO_SANITIZE ucontext_t *fx_arch_frame_copy(const ucontext_t *context,
					      size_t size, uintptr_t to)
{
	uintptr_t from = fx_arch_frame_of(context);
	void *target = (void *)to;
	const void *source = (void *)from;
	ucontext_t *copy = (void *)((uintptr_t)context - from + to);

	__asm__ volatile("rep movsb"
			 : "+D"(target), "+S"(source), "+c"(size)
			 :
			 : "memory");
	if (copy->uc_mcontext.fpregs)
		copy->uc_mcontext.fpregs =
			(void *)((uintptr_t)copy->uc_mcontext.fpregs - from +
				 to);
	return copy;
}
