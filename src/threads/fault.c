/* SPDX-License-Identifier: MIT */
/* Making a fault again at home; see threads/fault.h. */
#include "threads/fault.h"

#include "arch/arch.h"
#include "threads/alternate.h"
#include "threads/mask.h"
#include "threads/thread.h"

#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif

#ifndef SS_AUTODISARM
#define SS_AUTODISARM (1u << 31)
#endif

#define FRAME_AT_LEAST 4096 /* where the kernel does not say */
#define WAY_HOME 2048 /* the stack of settle_down() and what it calls */

struct fault {
	struct fx_thread *me;
	int signal;
	siginfo_t info; /* the frame's is gone when the kernel makes a new one */
};

size_t fx_fault_room(void)
{
	size_t frame = getauxval(AT_MINSIGSTKSZ);

	return (frame ? frame : FRAME_AT_LEAST) + WAY_HOME;
}

bool fx_fault_is(int signal, const siginfo_t *info)
{
	switch (signal) {
	case SIGSEGV:
	case SIGBUS:
	case SIGFPE:
	case SIGILL:
	case SIGTRAP:
	case SIGSYS:
		return info->si_code > 0;
	default:
		return false;
	}
}

/* These come when the instruction is over. */
static bool is_trap(int signal)
{
	return signal == SIGTRAP || signal == SIGSYS;
}

/* Nobody can hold a fault back. */
static void raise_again(const struct fault *fault, uint64_t *mask)
{
	const uint64_t bit = 1ull << (fault->signal - 1);
	struct sigaction action = { .sa_handler = SIG_DFL };

	if (*mask & bit) {
		*mask &= ~bit;
		sigaction(fault->signal, &action, NULL);
	}
	fx_arch_syscall(SYS_rt_tgsigqueueinfo, getpid(), fault->me->tid,
			fault->signal, (long)&fault->info, 0, 0);
}

/*
 * To the own kernel thread, where everything is blocked until the frame is
 * returned from: what comes or was kept is delivered then, where the thread
 * was.
 */
static void settle_down(struct fault *fault, ucontext_t *context)
{
	struct fx_thread *me = fault->me;

	fx_thread_home(me, FX_HOME_SIGNAL);
	fx_mask_set(FX_MASK_ALL);
	fx_task_asked(&me->task, FX_PENDING_SIGNAL | FX_PENDING_HOME);
	fx_store_relaxed(&me->inside, me->inside - 1);
	if (is_trap(fault->signal))
		raise_again(fault, (uint64_t *)&context->uc_sigmask);
	/* To its handler, which knows whether this is the place. */
	if (fx_exchange(&me->cancel_sent, 0u) ||
	    (me->cancel_async && fx_thread_canceled(me)))
		fx_arch_syscall(SYS_tgkill, getpid(), me->tid, FX_SIGNAL_CANCEL,
				0, 0, 0);
}

/* A frame that has moved. */
struct moved {
	struct fault fault;
	ucontext_t *context;
	uint64_t carriers_mask;
};

static void go_on(void *arg)
{
	struct moved moved = *(struct moved *)arg;

	/* From here on the stack of the carrier is for the next fault. */
	fx_mask_set(moved.carriers_mask);
	settle_down(&moved.fault, moved.context);
}

/* Where the kernel would have put a frame of this size; 0: it would not. */
static uintptr_t place(const struct fx_thread *me, const ucontext_t *context,
		       size_t size)
{
	const stack_t *own = &me->alternate;
	uintptr_t sp = fx_arch_interrupted_sp(context);
	uintptr_t to = sp - FX_ARCH_RED_ZONE;
	bool on_own = false;

	if (me->has_alternate) {
		on_own = fx_alternate_holds(own, sp) &&
			 !(own->ss_flags & (int)SS_AUTODISARM);
		if (!on_own)
			to = (uintptr_t)own->ss_sp + own->ss_size;
	}
	to -= size;
	to -= (to - fx_arch_frame_of(context)) % FX_ARCH_FRAME_ALIGN;
	if (me->has_alternate && to < (uintptr_t)own->ss_sp + WAY_HOME)
		return 0;
	return to;
}

/* The fault is made once more, and ends the process. */
static void give_up(int signal)
{
	struct sigaction action = { .sa_handler = SIG_DFL };

	sigaction(signal, &action, NULL);
}

/*
 * The frame is on the carrier's stack: because the thread has an alternate one,
 * or because it has none and the handler asked for one all the same. Should
 * there be no room, the copying makes a fault, with no stack left for that.
 */
static void move(struct fx_thread *me, int signal, const siginfo_t *info,
		 ucontext_t *context, const stack_t *carriers, uint64_t mask)
{
	uintptr_t from = fx_arch_frame_of(context);
	size_t size = (uintptr_t)carriers->ss_sp + carriers->ss_size - from;
	uintptr_t to = place(me, context, size);
	volatile int *volatile nowhere = NULL;
	struct moved moved = {
		.fault = { .me = me, .signal = signal, .info = *info },
		.carriers_mask = mask,
	};

	if (!to) {
		give_up(SIGSEGV);
		*nowhere = 0;
	}
	moved.context = fx_arch_frame_copy(context, size, to);
	fx_thread_enter(me);
	fx_arch_frame_leave(moved.context, go_on, &moved);
}

void fx_fault_go_home(struct fx_thread *me, int signal, siginfo_t *info,
		      ucontext_t *context)
{
	uint64_t *mask = (uint64_t *)&context->uc_sigmask;
	stack_t carriers = context->uc_stack;
	uint64_t carriers_mask = *mask;
	struct fault fault;

	if (fx_alternate_holds(&carriers, fx_arch_interrupted_sp(context))) {
		give_up(signal);
		return;
	}
	*mask = me->mask;
	context->uc_stack = fx_alternate_of(me);
	if (fx_alternate_holds(&carriers, fx_arch_frame_of(context)))
		move(me, signal, info, context, &carriers, carriers_mask);
	fault = (struct fault){ .me = me, .signal = signal, .info = *info };
	fx_thread_enter(me);
	fx_mask_set(carriers_mask);
	settle_down(&fault, context);
}
