/* SPDX-License-Identifier: MIT */
/*
 * Signal frames: what the kernel puts on a stack for a handler to return by.
 * From low to high addresses: return address, ucontext_t, siginfo_t, and the
 * extended state that uc_mcontext.fpregs points to, aligned to 64.
 */
#ifndef FX_ARCH_X86_64_FRAME_H
#define FX_ARCH_X86_64_FRAME_H

#include "base/types.h"

#include <ucontext.h>

#define FX_ARCH_RED_ZONE 128 /* below the stack pointer; not to be touched */
#define FX_ARCH_FRAME_ALIGN 64

/* The lowest address of the frame that @context is in. */
static inline uintptr_t fx_arch_frame_of(const ucontext_t *context)
{
	return (uintptr_t)context - sizeof(void *);
}

uintptr_t fx_arch_interrupted_sp(const ucontext_t *context);

/*
 * Can another kernel thread return from a frame, and then be as the frame
 * says? Valgrind keeps the signal mask elsewhere.
 */
bool fx_arch_frames_move(void);

/**
 * fx_arch_frame_copy - copy a frame to another stack
 * @size: of the frame, and perhaps of what lies above it
 * @to: as far from a multiple of FX_ARCH_FRAME_ALIGN as the frame is
 *
 * Return: the context in the copy, which can be returned from.
 */
ucontext_t *fx_arch_frame_copy(const ucontext_t *context, size_t size,
			       uintptr_t to);

/**
 * fx_arch_frame_leave - go on where a frame says, after one more thing
 * @last: is called below the frame, on its stack; may switch
 */
void fx_arch_frame_leave(ucontext_t *context, void (*last)(void *), void *arg)
	__attribute__((noreturn));

#endif /* FX_ARCH_X86_64_FRAME_H */
