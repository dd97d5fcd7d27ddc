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
#include "engine/engines.h"
#include "engine/run.h"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Near the cost of a wake-up: longer wastes a core, shorter pays it often. */
#define SPIN_NS 50000u
/* Empty looks between two looks at the clock and the epoll set. */
#define LOOKS 128
/* Calls in a row after which parked descriptors get their turn. */
#define CALLS_IN_A_ROW 64
/*
 * Completions in a row after which a sleeping owner is woken; at the latest
 * when there are no more to come at once.
 */
#define COMPLETIONS_A_WAKE 16
/* Of so few calls under way each is waited for, as long as sleeping costs. */
#define FEW_CALLS 2
#define FEW_SPIN_NS 5000u

struct uthread_engine {
	/* Read-mostly. */
	struct fx_engine base;
	struct fx_runner model; /* for the pool's threads */
	uint64_t spin_ns;
	int core_eventfd;
	pthread_t core;
	uint32_t stop;
	int core_cpu; /* where the core thread was seen last */

	/* Written by whoever carries calls out. */
	struct fx_park park __attribute__((aligned(FX_CACHE_LINE)));
	struct fx_pool pool;
	struct fx_cost cost;
	struct fx_guard guard, core_guard; /* owner's, core thread's */

	/* Owner. */
	struct fx_runner runner __attribute__((aligned(FX_CACHE_LINE)));
	struct fx_worker_view view;

	/* Core thread. */
	struct fx_runner core_runner __attribute__((aligned(FX_CACHE_LINE)));
	struct fx_worker_view core_view;
	unsigned untold; /* completions without a look at the owner */
};

static struct uthread_engine *of(struct fx_engine *engine)
{
	return fx_container_of(engine, struct uthread_engine, base);
}

static void owner_complete(struct fx_runner *runner, uint32_t index,
			   int64_t ret)
{
	struct uthread_engine *e =
		fx_container_of(runner, struct uthread_engine, runner);

	fx_local_add(&e->base.local, runner->set, index, ret);
}

/*
 * An owner that is woken by the first of many completions goes back to sleep
 * after each: so it is told of some at a time.
 */
static void tell_owner(struct uthread_engine *e)
{
	if (!e->untold)
		return;
	e->untold = 0;
	fx_set_look_at_owner(e->base.set);
}

static void core_complete(struct fx_runner *runner, uint32_t index, int64_t ret)
{
	struct uthread_engine *e =
		fx_container_of(runner, struct uthread_engine, core_runner);

	fx_set_finish(runner->set, &e->core_view, index, ret);
	if (++e->untold == COMPLETIONS_A_WAKE)
		tell_owner(e);
}

/* The core thread --------------------------------------------------------- */

/*
 * What the owner leaves to the core thread: a close ends the calls posted
 * before it, and the core thread may be in the middle of one of them.
 */
static bool may_help(const struct flexsc_entry *entry, void *arg)
{
	struct uthread_engine *e = arg;

	return !(fx_engine_desc(&e->base, entry->nr)->flags & FX_CALL_CLOSES);
}

/* Up to @limit submissions; returns how many chains were taken. */
static unsigned take(struct uthread_engine *e, struct fx_runner *runner,
		     struct fx_worker_view *view, unsigned limit)
{
	bool helping = runner == &e->runner;
	uint32_t indices[FLEXSC_MAX_CHAIN];
	unsigned n = 0;

	while (n < limit) {
		int nr = fx_set_take(e->base.set, view, indices,
				     helping ? may_help : NULL, e);

		if (nr <= 0)
			break;
		fx_run_link(e->base.set, indices, (unsigned)nr);
		fx_run(runner, indices[0]);
		n++;
	}
	return n;
}

static unsigned resume_parked(struct uthread_engine *e)
{
	unsigned n = 0;
	uint32_t index;

	while (n < CALLS_IN_A_ROW &&
	       (index = fx_park_next(&e->park)) != FX_NO_ENTRY) {
		fx_run(&e->core_runner, index);
		n++;
	}
	tell_owner(e);
	return n;
}

static void look_at_descriptors(struct uthread_engine *e, uint64_t timeout_ns)
{
	uint32_t index;
	uint64_t n;
	bool woken;

	fx_park_wait(&e->park, timeout_ns, &woken);
	if (woken)
		fx_arch_syscall(SYS_read, e->core_eventfd, (long)&n, sizeof(n),
				0, 0, 0);
	while ((index = fx_park_check(&e->park)) != FX_NO_ENTRY)
		fx_run_over(&e->core_runner, index,
			    fx_set_entry(e->base.set, index)->ret);
	tell_owner(e);
}

static void core_sleep(struct uthread_engine *e)
{
	struct fx_set *set = e->base.set;
	uint32_t *flag = &set->shared->engine_sleeping;

	fx_store_relaxed(flag, 1u);
	fx_barrier_heavy();
	if (!fx_set_has_work(set, &e->core_view) &&
	    !fx_load_acquire(&e->stop)) {
		fx_count(e->base.counters, core_sleeps);
		look_at_descriptors(e, fx_park_due(&e->park));
	}
	fx_exchange(flag, 0u);
	fx_store_relaxed(&e->core_cpu, sched_getcpu());
}

static void *core_main(void *arg)
{
	struct uthread_engine *e = arg;
	uint64_t last_work = fx_now_ns();
	unsigned looks = 0;

	pthread_setname_np(pthread_self(), "flexsc-core");
	fx_store_relaxed(&e->core_cpu, sched_getcpu());
	while (!fx_load_acquire(&e->stop)) {
		unsigned n =
			take(e, &e->core_runner, &e->core_view, CALLS_IN_A_ROW);

		tell_owner(e);
		if (n) {
			fx_count_add(e->base.counters, core_calls, n);
			looks = 0;
			last_work = 0;
			if (n < CALLS_IN_A_ROW)
				continue;
		} else if (++looks < LOOKS) {
			fx_cpu_relax();
			continue;
		}
		looks = 0;
		if (fx_load_relaxed(&e->park.nr_parked))
			look_at_descriptors(e, 0);
		if (resume_parked(e) || n || !last_work) {
			last_work = fx_now_ns();
			continue;
		}
		if (fx_now_ns() - last_work > e->spin_ns)
			core_sleep(e);
	}
	return NULL;
}

/* Setting up --------------------------------------------------------------- */

/* The processors that the core thread may use: not the owner's. */
static bool other_processors(cpu_set_t *set)
{
	int here = sched_getcpu();

	if (sched_getaffinity(0, sizeof(*set), set))
		return false;
	if (CPU_COUNT(set) < 2)
		return false;
	if (here >= 0)
		CPU_CLR(here, set);
	return true;
}

/* A owner pinned to one processor still leaves the others to the thread. */
static bool any_other_processor(cpu_set_t *set)
{
	int here = sched_getcpu();
	long nr = sysconf(_SC_NPROCESSORS_ONLN);

	if (other_processors(set))
		return true;
	if (nr < 2)
		return false;
	CPU_ZERO(set);
	for (long i = 0; i < nr && i < CPU_SETSIZE; i++)
		if (i != here)
			CPU_SET((size_t)i, set);
	return true;
}

static bool uthread_usable(char *reason, size_t size)
{
	cpu_set_t set;

	if (!any_other_processor(&set)) {
		snprintf(reason, size,
			 "needs a second processor, and there is only one");
		return false;
	}
	snprintf(reason, size,
		 "polls on another processor: the application's own leaves "
		 "system calls to it");
	return true;
}

static int start_core(struct uthread_engine *e)
{
	pthread_attr_t attr;
	sigset_t before;
	cpu_set_t set;
	int bad;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 256 * 1024);
	if (any_other_processor(&set))
		pthread_attr_setaffinity_np(&attr, sizeof(set), &set);
	fx_pool_mask(&before);
	bad = pthread_create(&e->core, &attr, core_main, e);
	if (bad == EINVAL) { /* a cpuset forbids the other processors */
		pthread_attr_t plain;

		pthread_attr_init(&plain);
		bad = pthread_create(&e->core, &plain, core_main, e);
		pthread_attr_destroy(&plain);
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return -bad;
}

static void set_runners(struct uthread_engine *e)
{
	e->model = (struct fx_runner){
		.set = e->base.set,
		.park = &e->park,
		.pool = &e->pool,
		.cost = &e->cost,
		.table = e->base.table,
	};
	e->runner = e->model;
	e->core_runner = e->model;
	e->runner.owner = true;
	e->runner.guard = &e->guard;
	e->core_runner.guard = &e->core_guard;
	e->runner.complete = owner_complete;
	e->core_runner.complete = core_complete;
	fx_worker_view_init(&e->view);
	fx_worker_view_init(&e->core_view);
}

static int uthread_new(struct fx_engine **engine,
		       const struct fx_engine_config *config)
{
	struct uthread_engine *e = aligned_alloc(FX_CACHE_LINE, sizeof(*e));
	int bad;

	if (!e)
		return -ENOMEM;
	*e = (struct uthread_engine){ .spin_ns = SPIN_NS };
	if (config->spin_ns != FX_NEVER)
		e->spin_ns = config->spin_ns;
	fx_engine_setup(&e->base, &fx_engine_uthread, config);
	/* Everything else is worth leaving to the core thread. */
	e->base.attempts = 1u << FX_CALL_NONE | 1u << FX_CALL_ABSENT;
	e->base.publishes = true;
	e->core_eventfd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (e->core_eventfd < 0) {
		bad = -EMFILE;
		goto free_engine;
	}
	bad = fx_park_init(&e->park, config->set, config->table,
			   config->counters, e->core_eventfd);
	if (bad)
		goto close_eventfd;
	e->park.shared = true;
	set_runners(e);
	fx_pool_init(&e->pool, config->set, &e->model, config->counters,
		     config->max_threads);
	bad = start_core(e);
	if (bad)
		goto fini_park;
	*engine = &e->base;
	return 0;

fini_park:
	fx_park_fini(&e->park);
close_eventfd:
	close(e->core_eventfd);
free_engine:
	free(e);
	return bad;
}

static void uthread_free(struct fx_engine *engine)
{
	struct uthread_engine *e = of(engine);

	fx_store_release(&e->stop, 1u);
	fx_park_poke(&e->park);
	pthread_join(e->core, NULL);
	fx_guard_fini(&e->guard);
	fx_guard_fini(&e->core_guard);
	fx_pool_fini(&e->pool);
	fx_park_fini(&e->park);
	close(e->core_eventfd);
	free(e);
}

static void uthread_abandon(struct fx_engine *engine)
{
	struct uthread_engine *e = of(engine);

	fx_pool_abandon(&e->pool);
	fx_park_fini(&e->park);
	close(e->core_eventfd);
	free(e);
}

/* The owner ----------------------------------------------------------------- */

static bool uthread_attempt(struct fx_engine *engine, struct flexsc_entry *call)
{
	const struct fx_call_desc *desc = fx_engine_desc(engine, call->nr);

	if (desc->call_class == FX_CALL_NONE ||
	    desc->call_class == FX_CALL_ABSENT)
		call->ret = fx_run_refused(desc);
	else
		call->ret = fx_call_plain(call); /* the owner's identity */
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
		fx_park_poke(&of(engine)->park);
}

/* Anything to reap, before or while polling for it? */
static bool has_result(struct uthread_engine *e)
{
	return e->base.local.first || fx_set_has_completion(e->base.set);
}

/*
 * Nothing to do: carry out pending calls here too, one chain at a time, until
 * something completes. A call on a descriptor parks as on the core thread.
 */
static bool help(struct uthread_engine *e)
{
	if (!take(e, &e->runner, &e->view, 1))
		return false;
	fx_count(e->base.counters, helped);
	/* What was parked may be due before the core thread would look. */
	uthread_flush(&e->base);
	return true;
}

/* The owner was moved to the core thread's processor: it must give way. */
static void keep_apart(struct uthread_engine *e)
{
	int here = sched_getcpu(), saved = errno;
	cpu_set_t set;

	if (here < 0 || here != fx_load_relaxed(&e->core_cpu))
		return;
	if (any_other_processor(&set) &&
	    pthread_setaffinity_np(e->core, sizeof(set), &set) == 0)
		fx_store_relaxed(&e->core_cpu, -1);
	errno = saved;
}

static bool spin(struct uthread_engine *e, uint64_t window, bool helping)
{
	uint64_t begin = fx_now_ns();

	fx_count(e->base.counters, spins);
	keep_apart(e);
	do {
		for (unsigned i = 0; i < LOOKS; i++) {
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
static bool wait_awake(struct uthread_engine *e, uint64_t timeout_ns)
{
	uint32_t parked = fx_load_relaxed(&e->park.nr_parked);
	uint32_t under_way = fx_set_claimed(e->base.set) - parked;
	uint64_t window = timeout_ns < e->spin_ns ? timeout_ns : e->spin_ns;

	if (!parked)
		return help(e) || spin(e, window, true);
	if (!under_way || under_way > FEW_CALLS)
		return false;
	return spin(e, window < FEW_SPIN_NS ? window : FEW_SPIN_NS, false);
}

static void owner_sleep(struct uthread_engine *e, uint64_t timeout_ns)
{
	struct timespec ts = fx_timespec(timeout_ns);
	struct pollfd p = { .fd = e->base.set->owner_eventfd,
			    .events = POLLIN };
	uint64_t n;

	if (fx_pool_stalled(&e->pool))
		fx_count(e->base.counters, stalls);
	if (!fx_set_owner_sleep(e->base.set))
		return;
	fx_count(e->base.counters, sleeps);
	if (fx_arch_syscall(SYS_ppoll, (long)&p, 1,
			    timeout_ns == FX_NEVER ? 0 : (long)&ts, 0, 0,
			    0) == 1)
		fx_arch_syscall(SYS_read, p.fd, (long)&n, sizeof(n), 0, 0, 0);
	fx_set_owner_awake(e->base.set);
}

static void uthread_wait(struct fx_engine *engine, uint64_t timeout_ns)
{
	struct uthread_engine *e = of(engine);

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
	struct uthread_engine *e = of(engine);
	struct flexsc_entry *entry = fx_set_entry(engine->set, index);

	switch (fx_set_cancel(engine->set, index)) {
	case FX_CANCEL_DONE:
		return -EALREADY;
	case FX_CANCEL_BEFORE:
	case FX_CANCEL_BUSY:
		break;
	}
	/* Not parked and not in the pool: its runner sees the request. */
	if (fx_park_cancel(&e->park, index) || fx_pool_cancel(&e->pool, index))
		fx_run_over(&e->runner, index,
			    entry->ret > 0 && entry->nr != SYS_connect ?
				    entry->ret :
				    -ECANCELED);
	return 0;
}

static void uthread_closing(struct fx_engine *engine, int fd)
{
	struct uthread_engine *e = of(engine);
	uint32_t index;

	while ((index = fx_park_cancel_fd(&e->park, fd)) != FX_NO_ENTRY)
		fx_run_over(&e->runner, index, -ECANCELED);
	fx_park_reset(&e->park, fd, FX_KIND_UNKNOWN, false);
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
	return !engine->local.first && fx_set_owner_sleep(engine->set);
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
	.fd = uthread_fd,
	.due = uthread_due,
	.arm = uthread_arm,
};
