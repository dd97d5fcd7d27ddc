/* SPDX-License-Identifier: MIT */
/* Alternate signal stacks; see threads/alternate.h. */
#include "threads/alternate.h"

#include "arch/arch.h"
#include "threads/fault.h"

#include <sys/syscall.h>

static const stack_t none = { .ss_flags = SS_DISABLE };

/* Threads that cannot take a fault from there home have to stay. */
static bool will_do(const stack_t *stack)
{
	return stack->ss_size >= fx_fault_room() && fx_arch_frames_move();
}

static long kernels(const stack_t *stack, stack_t *old)
{
	return fx_arch_syscall(SYS_sigaltstack, (long)stack, (long)old, 0, 0, 0,
			       0);
}

static bool enables(const stack_t *stack)
{
	return !(stack->ss_flags & SS_DISABLE);
}

/* A new thread would have it. */
static void give_up_first(struct fx_thread *me)
{
	me->worn |= me->first_alternate;
	me->first_alternate = false;
}

/* The usual ones: nothing that the kernel would refuse. */
static bool is_plain(const struct fx_thread *me, const stack_t *stack)
{
	if (me->has_alternate &&
	    fx_alternate_holds(&me->alternate,
			       (uintptr_t)__builtin_frame_address(0)))
		return false;
	return !stack || stack->ss_flags == SS_DISABLE ||
	       (stack->ss_flags == 0 && will_do(stack));
}

/* Of a thread that is away: its home is told when it comes back. */
static void change_record(struct fx_thread *me, const stack_t *stack,
			  stack_t *old)
{
	stack_t before = fx_alternate_of(me);

	if (stack) {
		give_up_first(me);
		me->has_alternate = enables(stack);
		me->alternate = *stack;
	}
	if (old)
		*old = before;
}

int fx_alternate_change(const stack_t *stack, stack_t *old)
{
	struct fx_thread *me = fx_thread_self();
	int ret;

	if (me && me->task.carrier) {
		if (is_plain(me, stack)) {
			change_record(me, stack, old);
			return 0;
		}
		fx_thread_home(me, FX_HOME_STACK);
	}
	ret = sigaltstack(stack, old);
	if (ret || !me || !stack)
		return ret;
	give_up_first(me);
	if (!enables(stack))
		return 0;
	me->has_alternate = true;
	me->alternate = *stack;
	if (!will_do(stack))
		fx_thread_stay(me, FX_HOME_STACK);
	return 0;
}

void fx_alternate_begin(struct fx_thread *me)
{
	me->has_alternate = kernels(NULL, &me->alternate) == 0 &&
			    enables(&me->alternate);
	me->first_alternate = me->has_alternate;
}

bool fx_alternate_leave(struct fx_thread *me)
{
	stack_t parking;

	if (fx_likely(!me->has_alternate))
		return true;
	parking = fx_thread_parking_stack(me);
	if (kernels(&parking, &me->alternate))
		return false;
	me->has_alternate = enables(&me->alternate);
	me->home_alternate = true;
	return true;
}

void fx_alternate_back(struct fx_thread *me)
{
	if (fx_likely(!me->has_alternate && !me->home_alternate))
		return;
	kernels(me->has_alternate ? &me->alternate : &none, NULL);
	me->home_alternate = false;
}

stack_t fx_alternate_of(const struct fx_thread *me)
{
	return me->has_alternate ? me->alternate : none;
}
