/* SPDX-License-Identifier: MIT */
/* The watcher of calls that should not block; see engine/guard.h. */
#include "engine/guard.h"

#include "arch/arch.h"
#include "base/barrier.h"
#include "base/clock.h"
#include "base/futex.h"
#include "engine/pool.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CLAIMED (UINT32_MAX - 1)
#define SENT UINT32_MAX

void fx_guard_init(struct fx_guard *guard, const pid_t *holder)
{
	*guard = (struct fx_guard){ .holder = holder };
}

bool fx_guard_wanted(unsigned int nr)
{
	switch (nr) {
	case SYS_open:
	case SYS_creat:
	case SYS_open_by_handle_at:
	case SYS_openat:
	case SYS_openat2:
	case SYS_accept:
	case SYS_accept4:
		return true;
	default:
		return false;
	}
}

static void interrupt(struct fx_guard *g, uint32_t number)
{
	/* Its caller has lost its processor since it was interrupted. */
	if (number >= CLAIMED)
		return;
	if (!fx_cas(&g->inside, &number, CLAIMED))
		return;
	fx_interrupt_send(&g->interrupt, g->tid);
	fx_store_release(&g->inside, SENT);
	fx_futex_wake(&g->inside, 1);
}

/* Nothing guarded for a while: sleep until there is. */
static void watcher_sleep(struct fx_guard *g)
{
	fx_store_relaxed(&g->asleep, 1u);
	fx_barrier_heavy();
	while (!fx_load_acquire(&g->inside) && !fx_load_acquire(&g->stop) &&
	       fx_load_acquire(&g->asleep))
		fx_futex_wait(&g->asleep, 1, FX_NEVER);
	fx_store_relaxed(&g->asleep, 0u);
}

static void *watch(void *arg)
{
	struct fx_guard *g = arg;
	uint32_t before = 0;

	pthread_setname_np(pthread_self(), "flexsc-watch");
	while (!fx_load_acquire(&g->stop)) {
		uint32_t number = fx_load_acquire(&g->inside);

		if (number && number == before)
			interrupt(g, number);
		else if (!number && !before)
			watcher_sleep(g);
		before = number;
		fx_futex_wait(&g->stop, 0, FX_GUARD_MS * FX_NS_PER_MS);
	}
	return NULL;
}

bool fx_guard_start(struct fx_guard *g)
{
	pthread_attr_t attr;
	sigset_t before;
	int saved = errno;

	if (g->started || !fx_interrupt_signal())
		return g->started;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 64 * 1024);
	fx_pool_mask(&before);
	g->started = pthread_create(&g->watcher, &attr, watch, g) == 0;
	errno = saved;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return g->started;
}

void fx_guard_fini(struct fx_guard *guard)
{
	if (!guard->started)
		return;
	fx_store_release(&guard->stop, 1u);
	fx_futex_wake(&guard->stop, 1);
	fx_store_release(&guard->asleep, 0u);
	fx_futex_wake(&guard->asleep, 1);
	pthread_join(guard->watcher, NULL);
	guard->started = 0;
}

/* Returns true if the watcher has interrupted the call. */
static bool leave(struct fx_guard *g)
{
	uint32_t number = g->number;

	if (fx_cas(&g->inside, &number, 0u))
		return false;
	while (fx_load_acquire(&g->inside) != SENT)
		fx_futex_wait(&g->inside, CLAIMED, FX_NEVER);
	fx_interrupt_settle(&g->interrupt);
	fx_store_release(&g->inside, 0u);
	return true;
}

/* pthread_self() names a user thread, which any kernel thread may run. */
static void note_thread(struct fx_guard *g)
{
	if (g->holder && *g->holder) {
		g->tid = *g->holder;
		g->thread = 0;
	} else if (!g->tid || !pthread_equal(g->thread, pthread_self())) {
		g->tid = (pid_t)syscall(SYS_gettid);
		g->thread = pthread_self();
	}
}

int64_t fx_guard_call(struct fx_guard *g, const struct flexsc_entry *call)
{
	uint64_t args[6] = { 0 };
	int64_t ret;
	bool blocked;

	fx_guard_start(g);
	for (unsigned i = 0; i < call->nr_args; i++)
		args[i] = call->args[i];
	note_thread(g);
	fx_interrupt_self(&g->interrupt);
	do {
		if (++g->number >= CLAIMED)
			g->number = 1;
		fx_store_release(&g->inside, g->number);
		fx_barrier_light();
		if (fx_unlikely(fx_load_relaxed(&g->asleep)) &&
		    fx_exchange(&g->asleep, 0u))
			fx_futex_wake(&g->asleep, 1);
		ret = fx_arch_syscall_cancellable(&g->interrupt.wanted,
						  call->nr, args);
		blocked = leave(g);
		/* A signal handler of the application's: as if restarted. */
	} while (ret == -EINTR && !blocked);
	fx_interrupt_self(NULL);
	g->cut = blocked;
	if (blocked && (ret == -EINTR || ret == -ECANCELED))
		return FX_GUARD_BLOCKED;
	return ret;
}
