/* SPDX-License-Identifier: MIT */
/* Carriers, relay and rseq; see threads/start.h. */
#include "threads/start.h"

#include "arch/arch.h"
#include "base/futex.h"
#include "engine/attempt.h"
#include "engine/interrupt.h"
#include "page/trace.h"
#include "threads/alive.h"
#include "threads/cond.h"
#include "threads/create.h"
#include "threads/fresh.h"
#include "threads/lot.h"
#include "threads/mutex.h"
#include "threads/observe.h"
#include "threads/recycle.h"
#include "threads/relay.h"
#include "threads/rwlock.h"
#include "threads/sem.h"
#include "threads/stacks.h"
#include "threads/thread.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/rseq.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	NOT_YET,
	RUNNING,
	DECLINED
};

static struct fx_lock lock;
static uint32_t state;

char fx_process_name[16];

#define ARCH_SHSTK_STATUS 0x5005

/* A shadow stack cannot be switched by us. */
static bool has_shadow_stack(void)
{
	uint64_t features = 0;

	return fx_arch_syscall(SYS_arch_prctl, ARCH_SHSTK_STATUS,
			       (long)&features, 0, 0, 0, 0) == 0 &&
	       features & 1;
}

/* Of the calling thread; it would be the wrong thread's on a carrier. */
void fx_rseq_leave(void)
{
	char *area;

	if (!__rseq_size)
		return;
	area = (char *)fx_arch_thread_pointer() + __rseq_offset;
	fx_arch_syscall(SYS_rseq, (long)area, sizeof(struct rseq),
			RSEQ_FLAG_UNREGISTER, RSEQ_SIG, 0, 0);
}

/* Carriers and queues of the process that this one was forked from. */
static bool parents_sched;

static void leave_parents_sched(void)
{
	if (parents_sched)
		fx_sched_after_fork();
	parents_sched = false;
}

/* In the child of a fork that a thread made. */
static void need_again(struct fx_thread *me)
{
	if (me->holders && !me->stays && !me->exiting)
		me->needs = fx_sched_need() == 0;
}

static int begin(void)
{
	const char *cores = getenv("FLEXSC_CORES");
	struct fx_sched_options options = {
		.engine = getenv("FLEXSC_ENGINE"),
		.nr_carriers = cores ? (uint32_t)strtoul(cores, NULL, 10) : 0,
	};
	int bad;

	leave_parents_sched();
	fx_arch_syscall(SYS_prctl, PR_GET_NAME, (long)fx_process_name, 0, 0, 0,
			0);
	if (has_shadow_stack())
		return -ENOTSUP;
	if (!fx_mutex_understood() || !fx_cond_understood() ||
	    !fx_sem_understood() || !fx_rwlock_understood())
		return -ENOSYS;
	if (!fx_thread_known())
		return -ENOMEM;
	bad = fx_interrupt_adopt(FX_SIGNAL_CANCEL);
	if (bad)
		return bad;
	bad = fx_sched_init(&options);
	if (bad)
		return bad;
	fx_sendfile_whole = true;
	fx_rseq_leave();
	fx_fresh_start();
	bad = fx_relay_start();
	if (bad) {
		fx_sched_fini();
		return bad;
	}
	need_again(fx_thread_self());
	fx_observe_start();
	return 0;
}

static bool is_set(const char *name)
{
	const char *value = getenv(name);

	return value && *value && *value != '0';
}

static void tell_started(void)
{
	if (is_set("FLEXSC_VERBOSE"))
		fprintf(stderr,
			"flexsc: %s (%d): on FlexSC-Threads, engine %s, %u "
			"processors\n",
			program_invocation_short_name, (int)getpid(),
			fx_sched_engine(), fx_sched_nr_queues());
}

static void decline(int bad)
{
	const char *why = strerror(-bad);

	if (bad == -ENOTSUP)
		why = "shadow stacks are on";
	else if (bad == -ENOSYS)
		why = "this C library is not understood";
	fx_observe_declined(why);
	if (!is_set("FLEXSC_QUIET"))
		fprintf(stderr,
			"flexsc: %s: running without FlexSC-Threads (%s)\n",
			program_invocation_short_name, why);
}

int fx_threads_start(void)
{
	int saved = errno, bad = 0;
	bool now = false;

	if (fx_likely(fx_load_acquire(&state) == RUNNING))
		return 1;
	fx_lock(&lock);
	if (state == NOT_YET) {
		bad = begin();
		fx_store_release(&state, bad ? DECLINED : RUNNING);
		fx_store_release(&fx_threads_running, !bad);
		now = !bad;
	}
	fx_unlock(&lock);
	if (bad)
		decline(bad);
	else if (now)
		tell_started();
	errno = saved;
	return state == RUNNING;
}

void fx_threads_never(void)
{
	fx_store_release(&state, (uint32_t)DECLINED);
}

void fx_threads_after_signal_fork(void)
{
	const struct fx_thread *me = fx_thread_self();

	lock.word = 0;
	fx_alive_after_fork();
	fx_create_after_fork();
	fx_stacks_after_fork(me ? me->own : NULL);
	fx_trace_after_fork();
	if (state != RUNNING)
		return;
	fx_slab_after_fork();
	fx_recycle_after_fork();
	fx_lot_after_fork();
	fx_relay_after_fork();
	fx_observe_after_fork();
	parents_sched = true;
	fx_store_relaxed(&fx_threads_running, 0u);
	fx_store_relaxed(&state, (uint32_t)NOT_YET);
}

void fx_threads_after_fork(void)
{
	fx_threads_after_signal_fork();
	leave_parents_sched();
}
