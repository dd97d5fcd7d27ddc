/* SPDX-License-Identifier: MIT */
/*
 * Engine uthread: core specialization without the kernel's help. One syscall
 * thread on another core (the core thread) polls the submission ring and
 * carries calls out, so the owner enters the kernel only to sleep
 * (flexsc-osdi10.txt, 3.6). Calls on descriptors that are not ready are
 * parked on its epoll set; what can block for ever goes to the bounded pool.
 * An owner with nothing else to do helps: it takes pending calls itself.
 *
 * The core thread spins for a window after its last work, then sleeps; the
 * owner looks at its flag after each batch and pays for a wake-up only then.
 */
#include "arch/arch.h"
#include "arch/fd.h"
#include "engine/core.h"
#include "engine/engines.h"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Near the cost of a wake-up: longer wastes a core, shorter pays it often. */
#define SPIN_NS 50000u
/* Of so few calls under way each is waited for, as long as sleeping costs. */
#define FEW_CALLS 2
#define FEW_SPIN_NS 5000u

static struct fx_uthread *of(struct fx_engine *engine)
{
	return fx_container_of(engine, struct fx_uthread, poll.base);
}

/*
 * What the owner leaves to the core thread: a close ends the calls posted
 * before it, and the core thread may be in the middle of one of them. And what
 * may wait for storage, while one is stuck there. And an accept, for which the two
 * would be rivals, if there is nobody to get the owner out of one.
 */
static bool may_help(const struct flexsc_entry *entry, void *arg)
{
	struct fx_uthread *e = arg;
	const struct fx_call_desc *desc = fx_engine_desc(&e->poll.base, entry->nr);

	if (entry->nr == SYS_accept || entry->nr == SYS_accept4)
		return fx_guard_start(&e->poll.guard);
	return !(desc->flags & FX_CALL_CLOSES) &&
	       !(desc->call_class == FX_CALL_DISK &&
		 fx_load_relaxed(&e->nr_stuck));
}

/* The owner carries out one chain of the submission ring, if it may. */
static bool take(struct fx_uthread *e,
		 bool (*wanted)(const struct flexsc_entry *entry, void *arg))
{
	uint32_t indices[FLEXSC_MAX_CHAIN];
	int nr = fx_set_take(e->poll.base.set, &e->view, indices, wanted, e);

	if (nr <= 0)
		return false;
	fx_run_link(e->poll.base.set, indices, (unsigned)nr);
	fx_run(&e->poll.runner, indices[0]);
	return true;
}

/* Setting up --------------------------------------------------------------- */

static bool uthread_usable(char *reason, size_t size)
{
	cpu_set_t set;

	if (!fx_core_processors(&set)) {
		snprintf(reason, size,
			 "needs a second processor, and has only one");
		return false;
	}
	snprintf(reason, size,
		 "polls on another processor: the application's own leaves "
		 "system calls to it");
	return true;
}

int fx_uthread_init(struct fx_uthread *e, const struct fx_engine_ops *ops,
		    const struct fx_engine_config *config)
{
	int bad;

	e->core_eventfd = fx_eventfd();
	if (e->core_eventfd < 0)
		return -EMFILE;
	bad = fx_poll_init(&e->poll, ops, config, e->core_eventfd);
	if (bad)
		goto close_eventfd;
	bad = fx_park_wake_too(&e->poll.park, config->set->owner_eventfd, true);
	if (bad)
		goto fini_poll;
	e->spin_ns = config->spin_ns == FX_NEVER ? SPIN_NS : config->spin_ns;
	fx_worker_view_init(&e->view);
	return 0;

fini_poll:
	fx_poll_fini(&e->poll);
close_eventfd:
	fx_close(e->core_eventfd);
	return bad;
}

void fx_uthread_fini(struct fx_uthread *e)
{
	/* The watcher may be giving the role to another one. */
	if (fx_load_relaxed(&e->core))
		fx_core_fini(e);
	fx_poll_fini(&e->poll);
	fx_close(e->core_eventfd);
}

void fx_uthread_abandon(struct fx_uthread *e)
{
	fx_core_abandon(e);
	fx_poll_abandon(&e->poll);
	fx_close(e->core_eventfd);
}

int fx_uthread_start(struct fx_uthread *e)
{
	int bad;

	e->poll.park.shared = true;
	bad = fx_core_init(e);
	if (bad)
		return bad;
	/* The owner does not wait there any more. */
	fx_park_wake_too(&e->poll.park, e->poll.base.set->owner_eventfd, false);
	fx_count(e->poll.base.counters, core_starts);
	/* Everything else is worth leaving to the core thread. */
	fx_engine_publish(&e->poll.base,
			  1u << FX_CALL_NONE | 1u << FX_CALL_ABSENT);
	return 0;
}

void fx_uthread_stop(struct fx_uthread *e)
{
	fx_engine_unpublish(&e->poll.base);
	fx_core_fini(e);
	e->poll.base.set->shared->engine_sleeping = 0;
	while (take(e, NULL))
		;
	fx_park_wake_too(&e->poll.park, e->poll.base.set->owner_eventfd, true);
}

static int uthread_new(struct fx_engine **engine,
		       const struct fx_engine_config *config)
{
	struct fx_uthread *e = fx_poll_alloc(sizeof(*e));
	int bad;

	if (!e)
		return -ENOMEM;
	bad = fx_uthread_init(e, &fx_engine_uthread, config);
	if (bad)
		goto free_engine;
	bad = fx_uthread_start(e);
	if (bad)
		goto fini;
	*engine = &e->poll.base;
	return 0;

fini:
	fx_uthread_fini(e);
free_engine:
	free(e);
	return bad;
}

static void uthread_free(struct fx_engine *engine)
{
	fx_uthread_fini(of(engine));
	free(of(engine));
}

static void uthread_abandon(struct fx_engine *engine)
{
	fx_uthread_abandon(of(engine));
	free(of(engine));
}

/* The owner ----------------------------------------------------------------- */

static bool uthread_attempt(struct fx_engine *engine, struct flexsc_entry *call)
{
	const struct fx_call_desc *desc = fx_engine_desc(engine, call->nr);

	call->ret = fx_run_own(desc, call);
	return true;
}

static void uthread_post(struct fx_engine *engine, const uint32_t *indices,
			 unsigned nr)
{
	struct fx_set *set = engine->set;

	if (fx_likely(nr == 1))
		fx_set_publish(set, indices[0]);
	else
		fx_set_publish_chain(set, indices, nr);
}

static void uthread_flush(struct fx_engine *engine)
{
	struct fx_set *set = engine->set;

	fx_barrier_light();
	if (fx_unlikely(fx_load_relaxed(&set->shared->engine_sleeping)) &&
	    fx_exchange(&set->shared->engine_sleeping, 0u))
		fx_park_poke(&of(engine)->poll.park);
}

/* Anything to reap, before or while polling for it? */
static bool has_result(struct fx_uthread *e)
{
	return fx_local_has(e->poll.base.set) ||
	       fx_set_has_completion(e->poll.base.set);
}

/*
 * Nothing to do: carry out pending calls here too, one chain at a time, until
 * something completes. A call on a descriptor parks as on the core thread.
 */
static bool help(struct fx_uthread *e)
{
	if (!take(e, may_help))
		return false;
	fx_count(e->poll.base.counters, helped);
	/* What was parked may be due before the core thread would look. */
	uthread_flush(&e->poll.base);
	return true;
}

/* The owner was moved to the core thread's processor: it must give way. */
static void keep_apart(struct fx_uthread *e)
{
	int here = sched_getcpu(), saved = errno;
	cpu_set_t set;

	if (here < 0 || here != fx_load_relaxed(&e->core_cpu))
		return;
	if (fx_core_processors(&set) &&
	    sched_setaffinity(fx_load_relaxed(&e->core_tid), sizeof(set),
			      &set) == 0)
		fx_store_relaxed(&e->core_cpu, -1);
	errno = saved;
}

static bool spin(struct fx_uthread *e, uint64_t window, bool helping)
{
	uint64_t begin = fx_now_ns();

	fx_count(e->poll.base.counters, spins);
	keep_apart(e);
	do {
		for (unsigned i = 0; i < FX_CORE_LOOKS; i++) {
			if (has_result(e))
				return true;
			fx_cpu_relax();
		}
		if (helping && help(e))
			return true;
	} while (fx_now_ns() - begin < window);
	return has_result(e);
}

/*
 * Nothing to do. Who waits for nothing but its own calls wants them done, and
 * helps. Who has calls parked waits for others too: a server, whose processor
 * is for its handlers and not for system calls. It sleeps, since many calls
 * under way come back many at a time, and few only when somebody asks.
 */
static bool wait_awake(struct fx_uthread *e, uint64_t timeout_ns)
{
	uint32_t parked = fx_load_relaxed(&e->poll.park.nr_parked);
	uint32_t under_way = fx_set_claimed(e->poll.base.set) - parked;
	uint64_t window = timeout_ns < e->spin_ns ? timeout_ns : e->spin_ns;

	if (!parked)
		return help(e) || spin(e, window, true);
	if (!under_way || under_way > FEW_CALLS)
		return false;
	return spin(e, window < FEW_SPIN_NS ? window : FEW_SPIN_NS, false);
}

static void owner_sleep(struct fx_uthread *e, uint64_t timeout_ns)
{
	struct timespec ts = fx_timespec(timeout_ns);
	struct pollfd p = { .fd = e->poll.base.set->owner_eventfd,
			    .events = POLLIN };
	uint64_t n;

	if (fx_pool_stalled(&e->poll.pool))
		fx_count(e->poll.base.counters, stalls);
	if (!fx_set_owner_sleep(e->poll.base.set))
		return;
	fx_count(e->poll.base.counters, sleeps);
	if (fx_arch_syscall(SYS_ppoll, (long)&p, 1,
			    timeout_ns == FX_NEVER ? 0 : (long)&ts, 0, 0,
			    0) == 1)
		fx_arch_syscall(SYS_read, p.fd, (long)&n, sizeof(n), 0, 0, 0);
	fx_set_owner_awake(e->poll.base.set);
}

static void uthread_wait(struct fx_engine *engine, uint64_t timeout_ns)
{
	struct fx_uthread *e = of(engine);

	fx_call_round();
	if (timeout_ns == 0 || has_result(e))
		return;
	if (!wait_awake(e, timeout_ns))
		owner_sleep(e, timeout_ns);
}

static void uthread_interrupt(struct fx_engine *engine)
{
	static const uint64_t one = 1;

	fx_arch_syscall(SYS_write, engine->set->owner_eventfd, (long)&one,
			sizeof(one), 0, 0, 0);
}

static int uthread_cancel(struct fx_engine *engine, uint32_t index)
{
	struct fx_uthread *e = of(engine);
	struct flexsc_entry *entry = fx_set_entry(engine->set, index);

	switch (fx_set_cancel(engine->set, index)) {
	case FX_CANCEL_DONE:
		return -EALREADY;
	case FX_CANCEL_BEFORE:
	case FX_CANCEL_BUSY:
		break;
	}
	/* Not parked and not in the pool: its runner sees the request. */
	if (fx_park_cancel(&e->poll.park, index) || fx_pool_cancel(&e->poll.pool, index))
		fx_run_over(&e->poll.runner, index,
			    entry->ret > 0 && entry->nr != SYS_connect ?
				    entry->ret :
				    -ECANCELED);
	return 0;
}

static void uthread_closing(struct fx_engine *engine, int fd)
{
	struct fx_uthread *e = of(engine);
	uint32_t index;

	while ((index = fx_park_cancel_fd(&e->poll.park, fd)) != FX_NO_ENTRY)
		fx_run_over(&e->poll.runner, index, -ECANCELED);
	fx_park_reset(&e->poll.park, fd, FX_KIND_UNKNOWN, false);
}

static int uthread_fd(struct fx_engine *engine)
{
	return engine->set->owner_eventfd;
}

static uint64_t uthread_due(struct fx_engine *engine)
{
	(void)engine; /* the core thread looks after what is parked */
	return FX_NEVER;
}

static bool uthread_arm(struct fx_engine *engine)
{
	uint64_t n;

	fx_arch_syscall(SYS_read, engine->set->owner_eventfd, (long)&n,
			sizeof(n), 0, 0, 0);
	return !fx_local_has(engine->set) && fx_set_owner_sleep(engine->set);
}

const struct fx_engine_ops fx_engine_uthread = {
	.name = "uthread",
	.summary = "a syscall thread on another core polls the pages",
	.usable = uthread_usable,
	.new = uthread_new,
	.free = uthread_free,
	.abandon = uthread_abandon,
	.attempt = uthread_attempt,
	.post = uthread_post,
	.flush = uthread_flush,
	.wait = uthread_wait,
	.interrupt = uthread_interrupt,
	.cancel = uthread_cancel,
	.closing = uthread_closing,
	.patient = fx_poll_patient,
	.moving = fx_poll_moving,
	.fd = uthread_fd,
	.due = uthread_due,
	.arm = uthread_arm,
};
