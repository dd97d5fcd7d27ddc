/* SPDX-License-Identifier: MIT */
/*
 * Jumps that bring a signal mask back. sigsetjmp() itself is in
 * arch/x86_64/jump.S, since it returns twice; both happen at home, where the
 * mask is that of the thread.
 */
#include "preload/result.h"

#include <setjmp.h>

FX_NEXT(siglongjmp);
FX_NEXT(longjmp);
FX_NEXT(_longjmp);

void __longjmp_chk(struct __jmp_buf_tag env[1], int value)
	__attribute__((noreturn));
FX_NEXT(__longjmp_chk);

static void prepare(const struct __jmp_buf_tag *env)
{
	struct fx_thread *me = fx_thread_away();

	if (me && env->__mask_was_saved)
		fx_thread_home(me, FX_HOME_MASK);
}

FX_NAME void longjmp(struct __jmp_buf_tag env[1], int value)
{
	prepare(env);
	NEXT(longjmp)(env, value);
	__builtin_unreachable();
}

FX_NAME void siglongjmp(struct __jmp_buf_tag env[1], int value)
{
	prepare(env);
	NEXT(siglongjmp)(env, value);
	__builtin_unreachable();
}

FX_NAME void _longjmp(struct __jmp_buf_tag env[1], int value)
{
	prepare(env);
	NEXT(_longjmp)(env, value);
	__builtin_unreachable();
}

FX_NAME void __longjmp_chk(struct __jmp_buf_tag env[1], int value)
{
	prepare(env);
	NEXT(__longjmp_chk)(env, value);
	__builtin_unreachable();
}

/* Called by arch's jump.S before the C library's sigsetjmp(). */
__attribute__((visibility("hidden"))) void fx_before_setjmp(int save_mask);

void fx_before_setjmp(int save_mask)
{
	struct fx_thread *me = fx_thread_away();

	if (me && save_mask)
		fx_thread_home(me, FX_HOME_MASK);
}
