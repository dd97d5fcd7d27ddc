/* SPDX-License-Identifier: MIT */
/*
 * Engine kmod: flexsc.ko carries the calls out (<linux/flexsc.h>). Posting is
 * publishing; one crossing runs a whole batch in the owner's thread, which is
 * flexsc-osdi10.txt's mechanism on one core. What has to wait for descriptors
 * is the module's business; what may wait for anything else goes to threads
 * that are lent to it, made when it says that it is short of them.
 *
 * With a kernel core (engine/kcore.h) posting is all that the owner does: a
 * thread of the module polls on another processor. Engine kcore always has one;
 * kmod tries one and keeps it while that pays, by the rules of engine hybrid.
 *
 * The module refuses a process that is filtered, traced or audited, and that
 * can begin at any time. Then everything that waits is taken back, and this is
 * engine poll from then on.
 */
#include "arch/arch.h"
#include "arch/fd.h"
#include "engine/engines.h"
#include "engine/few.h"
#include "engine/kcore.h"
#include "engine/poll.h"
#include "engine/quiet.h"
#include "engine/run.h"
#include "engine/trial.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Near the cost of a wake-up: longer wastes a core, shorter pays it often. */
#define SPIN_NS 50000u
/* Of so few calls under way each is waited for, as long as sleeping costs. */
#define FEW_CALLS 2
#define FEW_SPIN_NS 5000u
/* Empty looks between two at the clock. */
#define LOOKS 128
/* The kernel core waits for its processor for more of a window: it is busy. */
#define CROWDED 0.2

struct kmod;

struct kmod_thread {
	struct kmod *engine;
	struct kmod_thread *next;
	pthread_t thread;
	uint32_t begun; /* it is about to be lent */
	uint32_t over; /* it is about to return */
};

/* Key: O, but for what the threads read. */
struct kmod {
	struct fx_poll poll; /* for the time after */
	int fd; /* the set's, as owner_eventfd */
	struct fx_few few;
	uint32_t max_threads, nr_threads;
	uint32_t nr_staying; /* threads that are not about to end */
	struct kmod_thread *threads;
	struct fx_kcore core;
	struct fx_trial trial;
	uint64_t spin_ns, delay_ns;
	bool fixed; /* as it is now: waited for elsewhere, or by choice */
};

static struct kmod *of(struct fx_engine *engine)
{
	return fx_container_of(engine, struct kmod, poll.base);
}

/* -errno; errno itself is left alone. */
static int request(int fd, unsigned long what, const void *argument)
{
	return (int)fx_arch_syscall(SYS_ioctl, fd, (long)what, (long)argument,
				    0, 0, 0);
}

/* Syscall threads ----------------------------------------------------------- */

/* Idle for long: all but one thread end. */
static bool is_last(struct kmod *e)
{
	uint32_t nr = fx_load_relaxed(&e->nr_staying);

	do {
		if (nr == 1)
			return true;
	} while (!fx_cas(&e->nr_staying, &nr, nr - 1));
	return false;
}

static void *lend(void *arg)
{
	struct kmod_thread *t = arg;
	struct flexsc_wait want = { .idle_ns = FX_POOL_IDLE_MS * FX_NS_PER_MS };
	struct kmod *e = t->engine;
	int bad;

	pthread_setname_np(pthread_self(), "flexsc-call");
	fx_store_relaxed(&t->begun, 1u);
	do {
		bad = request(e->fd, FLEXSC_IOC_WAIT, &want);
	} while (bad == -EINTR || (bad == -ETIME && is_last(e)));
	if (bad != -ETIME)
		fx_fetch_add(&e->nr_staying, -1u);
	fx_store_release(&t->over, 1u);
	return NULL;
}

static void join_ended(struct kmod *e)
{
	struct kmod_thread **p = &e->threads, *t;

	while ((t = *p)) {
		if (!fx_load_acquire(&t->over)) {
			p = &t->next;
			continue;
		}
		*p = t->next;
		pthread_join(t->thread, NULL);
		free(t);
		e->nr_threads--;
	}
}

static bool add_thread(struct kmod *e)
{
	struct kmod_thread *t = calloc(1, sizeof(*t));
	pthread_attr_t attr;
	sigset_t before;
	int bad;

	if (!t)
		return false;
	t->engine = e;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 64 * 1024);
	fx_pool_mask(&before);
	bad = pthread_create(&t->thread, &attr, lend, t);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	if (bad) {
		free(t);
		return false;
	}
	t->next = e->threads;
	e->threads = t;
	e->nr_threads++;
	fx_fetch_add(&e->nr_staying, 1u);
	return true;
}

/* So many calls are short of a thread; some threads may be on their way. */
static void add_threads(struct kmod *e, unsigned wanted)
{
	join_ended(e);
	for (struct kmod_thread *t = e->threads; t; t = t->next)
		if (wanted && !fx_load_relaxed(&t->begun))
			wanted--;
	while (wanted-- && e->nr_threads < e->max_threads)
		if (!add_thread(e))
			break;
}

/* Setting up --------------------------------------------------------------- */

static int open_and_register(struct flexsc_register *want)
{
	int fd = (int)fx_arch_syscall(SYS_openat, AT_FDCWD, (long)FLEXSC_DEVICE,
				      O_RDWR | O_CLOEXEC, 0, 0, 0);
	int bad;

	if (fd < 0)
		return fd;
	bad = request(fd, FLEXSC_IOC_REGISTER, want);
	if (!bad)
		return fd;
	fx_close(fd);
	return bad;
}

static bool kmod_usable(char *reason, size_t size)
{
	struct flexsc_register want = { .version = FLEXSC_ABI_VERSION,
					.max_entries = FLEXSC_PAGE_ENTRIES };
	const char *why = "carries system calls out in the kernel, a batch at "
			  "each crossing";
	int fd = open_and_register(&want);

	switch (fd) {
	case -ENOENT:
		why = "needs the module flexsc.ko, which is not loaded";
		break;
	case -EACCES:
	case -EPERM:
		why = "may not be used: the device's permissions, or the "
		      "process is filtered, traced or audited";
		break;
	case -EPROTONOSUPPORT:
		why = "finds another version of flexsc.ko";
		break;
	case -EDQUOT:
		why = "finds the user's limit of page sets reached";
		break;
	default:
		if (fd < 0)
			why = strerrordesc_np(-fd);
	}
	snprintf(reason, size, "%s", why);
	if (fd < 0)
		return false;
	fx_close(fd);
	return true;
}

/* The module itself ends what waits on their descriptors, before it does them. */
static void publish_closes(struct fx_engine *engine)
{
	static const unsigned closes[] = { SYS_close, SYS_dup2, SYS_dup3 };

	for (unsigned i = 0; i < FX_ARRAY_SIZE(closes); i++)
		fx_engine_publish_call(engine, closes[i]);
}

static int make(struct fx_engine **engine, const struct fx_engine_ops *ops,
		const struct fx_engine_config *config)
{
	struct flexsc_register want = {
		.version = FLEXSC_ABI_VERSION,
		.flags = config->keeps_files ? FLEXSC_REG_KEEP_FILES : 0,
		.max_entries = config->set->max_entries,
		.max_threads = (config->max_threads ? config->max_threads :
						      FX_POOL_THREADS) +
			       FX_KCORE_THREADS,
	};
	struct kmod *e = fx_poll_alloc(sizeof(*e));
	int bad;

	if (!e)
		return -ENOMEM;
	e->fd = open_and_register(&want);
	bad = e->fd;
	if (e->fd < 0)
		goto free;
	/* So few that a kernel core would have all of them: then there is none. */
	e->fixed = want.max_threads <= FX_KCORE_THREADS;
	e->max_threads = want.max_threads - (e->fixed ? 0 : FX_KCORE_THREADS);
	e->spin_ns = config->spin_ns == FX_NEVER ? SPIN_NS : config->spin_ns;
	bad = fx_poll_init(&e->poll, ops, config, e->fd);
	if (bad)
		goto close;
	bad = fx_set_adopt(config->set, e->fd, want.map_size);
	if (bad)
		goto fini_poll;
	fx_engine_publish(&e->poll.base,
			  1u << FX_CALL_NONE | 1u << FX_CALL_ABSENT);
	e->poll.base.enters = true;
	publish_closes(&e->poll.base);
	fx_few_init(&e->few, config->table, e->fd);
	*engine = &e->poll.base;
	return 0;
fini_poll:
	fx_poll_fini(&e->poll);
close:
	fx_close(e->fd);
free:
	free(e);
	return bad;
}

static int kmod_new(struct fx_engine **engine,
		    const struct fx_engine_config *config)
{
	return make(engine, &fx_engine_kmod, config);
}

static void kmod_free(struct fx_engine *engine)
{
	struct kmod *e = of(engine);
	struct kmod_thread *t;

	fx_kcore_stop(&e->core);
	request(e->fd, FLEXSC_IOC_STOP, NULL);
	while ((t = e->threads)) {
		e->threads = t->next;
		pthread_join(t->thread, NULL);
		free(t);
	}
	fx_poll_fini(&e->poll);
	free(e); /* the set closes the descriptor */
}

static void kmod_abandon(struct fx_engine *engine)
{
	struct kmod *e = of(engine);
	struct kmod_thread *t;

	fx_kcore_abandon(&e->core);
	while ((t = e->threads)) {
		e->threads = t->next;
		free(t);
	}
	fx_poll_abandon(&e->poll);
	free(e);
}

/* The end of it ------------------------------------------------------------ */

/* A chain that was taken, or given back, and is SUBMITTED. */
static void carry_out(struct kmod *e, uint32_t *indices, unsigned nr)
{
	fx_run_link(e->poll.base.set, indices, nr);
	fx_run(&e->poll.runner, indices[0]);
}

static void take_back(struct kmod *e)
{
	struct fx_set *set = e->poll.base.set;
	uint32_t indices[16 * FLEXSC_MAX_CHAIN];
	struct flexsc_stop stop = { .indices = (uintptr_t)indices,
				    .max = FX_ARRAY_SIZE(indices) };
	int nr;

	while ((nr = request(e->fd, FLEXSC_IOC_STOP, &stop)) > 0)
		for (int i = 0, first = 0; i < nr; i++)
			if (!(fx_set_entry(set, indices[i])->flags &
			      FLEXSC_F_LINK)) {
				carry_out(e, indices + first,
					  (unsigned)(i + 1 - first));
				first = i + 1;
			}
}

/* On the submission ring still. */
static void take_rest(struct kmod *e)
{
	struct fx_set *set = e->poll.base.set;
	uint32_t indices[FLEXSC_MAX_CHAIN];
	struct fx_worker_view view;
	int nr;

	fx_worker_view_init(&view);
	while ((nr = fx_set_take(set, &view, indices, NULL, NULL)) > 0)
		carry_out(e, indices, (unsigned)nr);
}

static bool over(struct fx_engine *engine)
{
	return !engine->publishes;
}

static void fall_back(struct kmod *e)
{
	fx_kcore_stop(&e->core);
	e->fixed = true;
	e->poll.base.enters = false;
	fx_engine_unpublish(&e->poll.base);
	fx_count(e->poll.base.counters, fallbacks);
	take_back(e);
	take_rest(e);
}

/* FLEXSC_IOC_RUN, for 400 instructions less. */
static long cross(const struct kmod *e, uint64_t timeout_ns)
{
	return fx_arch_syscall(SYS_lseek, e->fd, (long)timeout_ns, SEEK_SET, 0,
			       0, 0);
}

static void crossed(struct kmod *e, long ret)
{
	if (fx_unlikely(ret > 0))
		add_threads(e, (unsigned)ret);
	else if (fx_unlikely(ret == -EACCES))
		fall_back(e);
}

static void run(struct kmod *e, uint64_t timeout_ns)
{
	crossed(e, cross(e, timeout_ns));
}

/* Kernel core --------------------------------------------------------------- */

static int start_core(struct kmod *e)
{
	int bad = fx_kcore_start(&e->core, e->fd, e->spin_ns);

	if (bad)
		return bad;
	fx_count(e->poll.base.counters, core_starts);
	e->poll.base.enters = false;
	return 0;
}

/* What it had not taken is on the ring, for the next RUN. */
static void stop_core(struct kmod *e)
{
	fx_kcore_stop(&e->core);
	fx_store_relaxed(&e->poll.base.set->shared->engine_sleeping, 0u);
	e->poll.base.enters = true;
	run(e, 0);
}

static bool run_wanted(struct kmod *e)
{
	return fx_load_relaxed(&e->poll.base.set->shared->run_wanted);
}

static bool threads_wanted(struct kmod *e)
{
	return fx_load_relaxed(&e->poll.base.set->shared->threads_wanted);
}

/* The module sends its threads away if it is not to serve them. */
static void check_core(struct kmod *e)
{
	if (fx_unlikely(threads_wanted(e) || run_wanted(e)))
		run(e, 0);
	if (!fx_kcore_broken(&e->core))
		return;
	stop_core(e);
	fx_worth_refuse(&e->trial.worth, fx_now_ns());
}

/* Beside others on its processor, or on the owner's: to the next one. */
static bool is_crowded(struct kmod *e, const struct fx_worth_window *window)
{
	uint64_t delay_ns;

	if (!e->core.on)
		return false;
	delay_ns = fx_kcore_delay_ns(&e->core) - e->delay_ns;
	if (sched_getcpu() != e->core.cpu &&
	    (double)delay_ns < CROWDED * (double)window->ns) {
		e->core.moves = 0;
		return false;
	}
	return !fx_kcore_move(&e->core);
}

static void end_window(struct kmod *e, struct fx_worth_window *window)
{
	window->crowded = is_crowded(e, window);
	if (e->fixed)
		return;
	switch (fx_worth_step(&e->trial.worth, window)) {
	case FX_WORTH_STAY:
		break;
	case FX_WORTH_START:
		if (!fx_kcore_possible() || !fx_trial_processor_free() ||
		    start_core(e))
			fx_worth_refuse(&e->trial.worth, window->now_ns);
		break;
	case FX_WORTH_STOP:
		stop_core(e);
		break;
	}
}

static void look(struct kmod *e)
{
	struct fx_worth_window window;
	int saved = errno;

	switch (fx_trial_look(&e->trial, e->poll.base.counters, &window)) {
	case FX_TRIAL_GOES_ON:
		break;
	case FX_TRIAL_OVER:
		end_window(e, &window);
		fx_trial_begin(&e->trial, e->poll.base.counters);
		/* fall through */
	case FX_TRIAL_AGAIN:
		e->delay_ns = fx_kcore_delay_ns(&e->core);
	}
	errno = saved;
}

static void flush_core(struct kmod *e)
{
	uint32_t *flag = &e->poll.base.set->shared->engine_sleeping;

	/* Order: the module interrupts this processor before it sleeps. */
	fx_barrier_light();
	if (fx_unlikely(fx_load_relaxed(flag)) && fx_exchange(flag, 0u))
		request(e->fd, FLEXSC_IOC_KICK, NULL);
}

static bool has_result(struct kmod *e)
{
	return fx_local_has(e->poll.base.set) ||
	       fx_set_has_completion(e->poll.base.set);
}

static bool spin(struct kmod *e, uint64_t window_ns)
{
	uint64_t begin = fx_now_ns();

	fx_count(e->poll.base.counters, spins);
	do {
		for (unsigned i = 0; i < LOOKS; i++) {
			if (has_result(e))
				return true;
			fx_cpu_relax();
		}
	} while (fx_now_ns() - begin < window_ns);
	return has_result(e);
}

/* As in engine uthread: who has calls parked waits for others, and sleeps. */
static bool wait_awake(struct kmod *e, uint64_t timeout_ns)
{
	struct fx_set *set = e->poll.base.set;
	uint32_t parked = fx_load_relaxed(&set->shared->nr_armed);
	uint32_t under_way = fx_set_claimed(set) - parked;
	uint64_t window = timeout_ns < e->spin_ns ? timeout_ns : e->spin_ns;

	if (!under_way || (parked && under_way > FEW_CALLS))
		return false;
	return spin(e, parked && window > FEW_SPIN_NS ? FEW_SPIN_NS : window);
}

/* The owner ----------------------------------------------------------------- */

static bool kmod_attempt(struct fx_engine *engine, struct flexsc_entry *call)
{
	const struct fx_call_desc *desc = fx_engine_desc(engine, call->nr);

	if (over(engine))
		return fx_engine_poll.attempt(engine, call);
	call->ret = fx_run_own(desc, call);
	return true;
}

static void kmod_post(struct fx_engine *engine, const uint32_t *indices,
		      unsigned nr)
{
	if (over(engine))
		fx_engine_poll.post(engine, indices, nr);
	else if (fx_likely(nr == 1))
		fx_set_publish(engine->set, indices[0]);
	else
		fx_set_publish_chain(engine->set, indices, nr);
}

static void kmod_flush(struct fx_engine *engine)
{
	struct kmod *e = of(engine);

	if (e->core.on)
		flush_core(e);
	else if (!over(engine) && !fx_few_run(&e->few, engine))
		run(e, 0);
}

static bool kmod_quiet(struct fx_engine *engine)
{
	struct kmod *e = of(engine);

	if (e->core.on)
		return !fx_kcore_broken(&e->core) && !threads_wanted(e) &&
		       !run_wanted(e);
	return over(engine) ? fx_engine_poll.quiet(engine) : !run_wanted(e);
}

static void kmod_work(struct fx_engine *engine, unsigned max)
{
	struct kmod *e = of(engine);

	if (e->core.on)
		check_core(e);
	else if (over(engine))
		fx_engine_poll.work(engine, max);
	else if (fx_unlikely(run_wanted(e)))
		run(e, 0);
}

/* RUN carries out what the core has not come to yet, before it sleeps. */
static void wait_with_core(struct kmod *e, uint64_t timeout_ns)
{
	fx_call_round();
	/* work() has checked it, and does so again. */
	if (!timeout_ns)
		return;
	check_core(e);
	if (has_result(e) || wait_awake(e, timeout_ns))
		return;
	fx_count(e->poll.base.counters, sleeps);
	run(e, timeout_ns);
}

static void kmod_wait(struct fx_engine *engine, uint64_t timeout_ns)
{
	struct kmod *e = of(engine);

	if (!over(engine) && fx_trial_due(&e->trial))
		look(e);
	if (e->core.on) {
		wait_with_core(e, timeout_ns);
		return;
	}
	if (over(engine)) {
		/* What threads of the module finish wakes it, too. */
		fx_engine_poll.wait(engine, timeout_ns);
		return;
	}
	fx_call_round();
	if (has_result(e) || (!timeout_ns && !run_wanted(e)))
		return;
	if (timeout_ns)
		fx_count(engine->counters, sleeps);
	run(e, timeout_ns);
}

static long kmod_enter(struct fx_engine *engine)
{
	return cross(of(engine), 0);
}

static void kmod_entered(struct fx_engine *engine, long ret)
{
	struct kmod *e = of(engine);

	crossed(e, ret);
	fx_call_round();
	if (!over(engine) && fx_trial_due(&e->trial))
		look(e);
}

static void kmod_interrupt(struct fx_engine *engine)
{
	request(of(engine)->fd, FLEXSC_IOC_WAKE, NULL);
}

static int kmod_cancel(struct fx_engine *engine, uint32_t index)
{
	if (over(engine)) {
		int bad = fx_engine_poll.cancel(engine, index);

		/* In a thread of the module, perhaps. */
		if (!bad)
			request(of(engine)->fd, FLEXSC_IOC_CANCEL,
				(void *)(uintptr_t)index);
		return bad;
	}
	switch (fx_set_cancel(engine->set, index)) {
	case FX_CANCEL_DONE:
		return -EALREADY;
	case FX_CANCEL_BEFORE:
		return 0;
	case FX_CANCEL_BUSY:
		request(of(engine)->fd, FLEXSC_IOC_CANCEL,
			(void *)(uintptr_t)index);
	}
	return 0;
}

static void kmod_closing(struct fx_engine *engine, int fd)
{
	if (over(engine))
		fx_engine_poll.closing(engine, fd);
	else if (fx_load_relaxed(&engine->set->shared->nr_armed))
		request(of(engine)->fd, FLEXSC_IOC_CLOSING,
			(void *)(uintptr_t)(unsigned)fd);
}

static bool kmod_moving(struct fx_engine *engine, int fd, int to)
{
	if (over(engine))
		return fx_poll_moving(engine, fd, to);
	return true; /* calls keep their file, as in a thread of the kernel */
}

/* The set of engine poll, which the device is in. */
static int kmod_fd(struct fx_engine *engine)
{
	struct kmod *e = of(engine);

	/* Its windows are over: it stays as it is chosen to be. */
	if (engine->ops == &fx_engine_kmod && e->core.on)
		stop_core(e);
	e->fixed = true;
	return fx_engine_poll.fd(engine);
}

static uint64_t kmod_due(struct fx_engine *engine)
{
	return over(engine) ? fx_engine_poll.due(engine) : FX_NEVER;
}

static bool kmod_arm(struct fx_engine *engine)
{
	if (!over(engine))
		run(of(engine), 0);
	if (over(engine))
		return fx_engine_poll.arm(engine);
	return !fx_local_has(engine->set) &&
	       !fx_set_has_completion(engine->set);
}

/* Always with a kernel core. */

static bool kcore_usable(char *reason, size_t size)
{
	if (!fx_kcore_possible()) {
		snprintf(reason, size, "needs a second processor");
		return false;
	}
	if (!kmod_usable(reason, size))
		return false;
	snprintf(reason, size,
		 "polls in the kernel, on another processor: the application's "
		 "own leaves system calls to it");
	return true;
}

static int kcore_new(struct fx_engine **engine,
		     const struct fx_engine_config *config)
{
	int bad = make(engine, &fx_engine_kcore, config);
	struct kmod *e;

	if (bad)
		return bad;
	e = of(*engine);
	bad = e->fixed ? -EAGAIN : start_core(e);
	e->fixed = true;
	if (bad)
		kmod_free(*engine);
	return bad;
}

#define REST                                                                 \
	.free = kmod_free, .abandon = kmod_abandon, .attempt = kmod_attempt, \
	.made = fx_poll_made, .post = kmod_post, .flush = kmod_flush,        \
	.quiet = kmod_quiet, .work = kmod_work, .wait = kmod_wait,           \
	.interrupt = kmod_interrupt, .cancel = kmod_cancel,                  \
	.closing = kmod_closing, .moving = kmod_moving, .fd = kmod_fd,       \
	.enter = kmod_enter, .entered = kmod_entered, .due = kmod_due,       \
	.arm = kmod_arm,

const struct fx_engine_ops fx_engine_kmod = {
	.name = "kmod",
	.summary = "flexsc.ko carries out a batch at each crossing",
	.usable = kmod_usable,
	.new = kmod_new,
	REST
};

const struct fx_engine_ops fx_engine_kcore = {
	.name = "kcore",
	.summary = "flexsc.ko polls the pages on another core",
	.usable = kcore_usable,
	.new = kcore_new,
	REST
};
