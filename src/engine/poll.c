/* SPDX-License-Identifier: MIT */
/*
 * Engine poll: the owner's own thread tries every call without blocking, and
 * parks it on an epoll set when its descriptor is not ready. What can block
 * on anything else goes to the bounded pool. Works everywhere; no thread
 * exists until the first call that needs one.
 */
#include "arch/arch.h"
#include "engine/chain.h"
#include "engine/engines.h"
#include "engine/poll.h"

#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Looking at the kernel costs a crossing: an idle poll asks now and then. */
#define IDLE_LOOKS 32

static struct fx_poll *of(struct fx_engine *engine)
{
	return fx_container_of(engine, struct fx_poll, base);
}

static void owner_complete(struct fx_runner *runner, uint32_t index,
			   int64_t ret)
{
	fx_local_add(runner->set, index, ret);
}

static bool poll_usable(char *reason, size_t size)
{
	snprintf(reason, size,
		 "works on every Linux; no thread per call, no spinning");
	return true;
}

void *fx_poll_alloc(size_t size)
{
	void *p = aligned_alloc(_Alignof(struct fx_poll), size);

	if (p)
		memset(p, 0, size);
	return p;
}

int fx_poll_init(struct fx_poll *e, const struct fx_engine_ops *ops,
		 const struct fx_engine_config *config, int wakefd)
{
	int bad;

	fx_engine_setup(&e->base, ops, config);
	bad = fx_park_init(&e->park, config->set, config->table,
			   config->counters, wakefd);
	if (bad)
		return bad;
	e->park.keeps = config->keeps_files;
	e->runner = (struct fx_runner){
		.set = config->set,
		.park = &e->park,
		.pool = &e->pool,
		.cost = &e->cost,
		.guard = &e->guard,
		.table = config->table,
		.owner = true,
		.complete = owner_complete,
	};
	fx_guard_init(&e->guard, &e->base.holder);
	fx_pool_init(&e->pool, config->set, &e->runner, config->counters,
		     config->max_threads);
	return 0;
}

void fx_poll_fini(struct fx_poll *e)
{
	fx_guard_fini(&e->guard);
	fx_pool_fini(&e->pool);
	fx_park_fini(&e->park);
}

void fx_poll_abandon(struct fx_poll *e)
{
	/* The threads are the parent's; the child's copy only has memory. */
	fx_pool_abandon(&e->pool);
	fx_park_fini(&e->park);
}

static int poll_new(struct fx_engine **engine,
		    const struct fx_engine_config *config)
{
	struct fx_poll *e = fx_poll_alloc(sizeof(*e));
	int bad;

	if (!e)
		return -ENOMEM;
	bad = fx_poll_init(e, &fx_engine_poll, config,
			   config->set->owner_eventfd);
	if (bad) {
		free(e);
		return bad;
	}
	*engine = &e->base;
	return 0;
}

static void poll_free(struct fx_engine *engine)
{
	fx_poll_fini(of(engine));
	free(of(engine));
}

static void poll_abandon(struct fx_engine *engine)
{
	fx_poll_abandon(of(engine));
	free(of(engine));
}

/* Is it for the owner to make? */
static bool goes_outside(struct fx_poll *e, const struct flexsc_entry *call)
{
	const struct fx_call_desc *desc = fx_engine_desc(&e->base, call->nr);

	/* Those to be guarded may wait for ever, for a peer. */
	if (!e->base.leaves || fx_cost_slow(&e->cost, call->nr) ||
	    (desc->flags & FX_CALL_NEWFD && fx_guard_wanted(call->nr)))
		return false;
	if (desc->flags & FX_CALL_CLOSES)
		fx_park_before(&e->park, desc, call);
	e->base.outside = fx_cost_sample(&e->cost, call->nr) ?
				  FX_OUTSIDE_TIMED :
				  FX_OUTSIDE;
	return true;
}

/* What waits for no descriptor; if it is not done, as at_once(). */
static bool at_once_other(struct fx_poll *e, const struct fx_call_desc *desc,
			  struct flexsc_entry *call)
{
	e->verdict = FX_TRY_THREAD;
	switch ((enum fx_call_class)desc->call_class) {
	case FX_CALL_NEVER:
		call->ret = fx_call_raw(call);
		break;
	case FX_CALL_DISK:
		if (goes_outside(e, call) || fx_cost_slow(&e->cost, call->nr))
			return false;
		call->ret = fx_run_disk(&e->cost, &e->park, desc, call, true,
					&e->guard);
		if (call->ret != FX_GUARD_BLOCKED)
			return true;
		call->ret = 0;
		return false;
	case FX_CALL_WAIT:
		return false;
	default:
		call->ret = fx_run_refused(desc);
		return true;
	}
	if (desc->flags & FX_CALL_NEWFD)
		fx_park_after(&e->park, desc, call, call->ret);
	return true;
}

/* It waits for a descriptor, and was tried. */
static bool at_once_fd(struct fx_poll *e, const struct fx_call_desc *desc,
		       struct flexsc_entry *call)
{
	if (e->verdict == FX_TRY_DISK && !goes_outside(e, call) &&
	    fx_run_storage(&e->cost, &e->park, call, &e->guard))
		e->verdict = FX_TRY_DONE;
	if (e->verdict != FX_TRY_DONE)
		return false;
	if (desc->flags & FX_CALL_NEWFD)
		fx_park_after(&e->park, desc, call, call->ret);
	return true;
}

/*
 * @verdict: FX_TRY_NOT_QUICK, or what that way came to. If it is not done,
 * e->verdict says what it needs, unless it goes outside.
 */
static __attribute__((noinline)) bool at_once(struct fx_poll *e,
					      struct flexsc_entry *call,
					      struct fx_others others,
					      enum fx_try verdict)
{
	const struct fx_call_desc *desc = fx_engine_desc(&e->base, call->nr);

	e->base.outside = FX_INSIDE;
	if (desc->call_class != FX_CALL_FD)
		return at_once_other(e, desc, call);
	if (verdict == FX_TRY_NOT_QUICK)
		verdict = fx_park_try(&e->park, call, others, &e->guard,
				      &e->seq);
	e->verdict = verdict;
	return at_once_fd(e, desc, call);
}

static bool poll_attempt(struct fx_engine *engine, struct flexsc_entry *call)
{
	struct fx_others none = { 0 };
	struct fx_poll *e = of(engine);
	enum fx_try verdict =
		fx_park_quick(&e->park, call, none, &e->guard, &e->seq);

	e->idle_looks = 0;
	return fx_likely(verdict == FX_TRY_DONE) ||
	       at_once(e, call, none, verdict);
}

static enum fx_begun poll_begin(struct fx_engine *engine,
				struct flexsc_entry *call, uint32_t nr_others,
				bool gathers)
{
	struct fx_others others = { .nr = nr_others, .gathers = gathers };
	struct fx_poll *e = of(engine);
	enum fx_try verdict =
		fx_park_quick(&e->park, call, others, &e->guard, &e->seq);

	e->idle_looks = 0;
	if (fx_likely(verdict == FX_TRY_DONE))
		return FX_BEGUN_DONE;
	if (verdict == FX_TRY_LATER)
		return FX_BEGUN_LATER;
	if (at_once(e, call, others, verdict))
		return FX_BEGUN_DONE;
	return e->verdict == FX_TRY_LATER    ? FX_BEGUN_LATER :
	       e->verdict == FX_TRY_TOGETHER ? FX_BEGUN_TOGETHER :
					       FX_BEGUN_NOT;
}

void fx_poll_made(struct fx_engine *engine, const struct flexsc_entry *call,
		  uint64_t ns)
{
	const struct fx_call_desc *desc = fx_engine_desc(engine, call->nr);
	struct fx_poll *e = of(engine);

	if (desc->flags & FX_CALL_NEWFD)
		fx_park_after(&e->park, desc, call, call->ret);
	if (ns)
		fx_cost_note(&e->cost, call->nr, ns);
}

static void poll_answered(struct fx_engine *engine,
			  const struct flexsc_entry *call, uint32_t nr_others)
{
	fx_park_answered(&of(engine)->park, call, nr_others);
}

static unsigned poll_attempt_chain(struct fx_engine *engine,
				   struct flexsc_entry *calls, unsigned nr)
{
	struct fx_poll *e = of(engine);
	unsigned done = 0;

	for (; done < nr; done++) {
		struct flexsc_entry *call = &calls[done];

		if (fx_chain_dead(call))
			call->ret = -ECANCELED;
		else if (!poll_attempt(engine, call))
			break;
		/* Most chains have nothing to tell. */
		for (unsigned i = done + 1; i < nr; i++)
			if (fx_is_error(call->ret) || fx_chain_dead(&calls[i]))
				fx_chain_tell(&calls[i], i - done, call->ret);
	}
	e->done = done < nr ? done : 0;
	return done;
}

/* An entry right after its attempt said what it needs. */
static void post_first(struct fx_poll *e, uint32_t index)
{
	struct flexsc_entry *entry = fx_set_entry(e->base.set, index);

	if (e->verdict == FX_TRY_PARK) {
		fx_store_relaxed(&entry->status, FLEXSC_BUSY);
		switch (fx_park_add(&e->park, index, e->seq)) {
		case FX_PARKED:
			return;
		case FX_PARK_FAILED:
			fx_run_over(&e->runner, index, entry->ret);
			return;
		case FX_PARK_RETRY:
			fx_run(&e->runner, index);
			return;
		case FX_PARK_THREAD:
			fx_count(e->base.counters, fallbacks);
			break;
		}
	}
	fx_pool_push(&e->runner, index);
}

static void poll_post(struct fx_engine *engine, const uint32_t *indices,
		      unsigned nr)
{
	struct fx_poll *e = of(engine);
	struct fx_set *set = engine->set;

	/* So that the results of a chain come in its order. */
	for (; e->done; e->done--, nr--, indices++)
		fx_local_add(set, indices[0],
			     fx_set_entry(set, indices[0])->ret);
	for (unsigned i = 0; i < nr; i++)
		fx_store_relaxed(&fx_set_entry(set, indices[i])->status,
				 FLEXSC_SUBMITTED);
	fx_run_link(set, indices, nr);
	post_first(e, indices[0]);
}

static void poll_flush(struct fx_engine *engine)
{
	(void)engine; /* every posting was acted on at once */
}

static bool poll_quiet(struct fx_engine *engine)
{
	struct fx_poll *e = of(engine);

	return !e->park.active && e->idle_looks++ % IDLE_LOOKS;
}

static void poll_work(struct fx_engine *engine, unsigned max)
{
	struct fx_poll *e = of(engine);
	uint32_t index;

	for (unsigned i = 0; i < max; i++) {
		index = fx_park_next(&e->park);
		if (index == FX_NO_ENTRY)
			break;
		fx_run(&e->runner, index);
	}
}

static void check_parked(struct fx_poll *e)
{
	uint32_t index;

	while ((index = fx_park_check(&e->park)) != FX_NO_ENTRY)
		fx_run_over(&e->runner, index,
			    fx_set_entry(e->base.set, index)->ret);
}

static void drain(int eventfd)
{
	uint64_t n;

	fx_arch_syscall(SYS_read, eventfd, (long)&n, sizeof(n), 0, 0, 0);
}

static void poll_wait(struct fx_engine *engine, uint64_t timeout_ns)
{
	struct fx_poll *e = of(engine);
	bool busy = false, woken;
	uint64_t due;
	int n;

	if (fx_local_has(e->base.set) || e->park.active)
		return;
	if (timeout_ns) {
		due = fx_park_due(&e->park);
		if (due < timeout_ns)
			timeout_ns = due;
		busy = fx_pool_busy(&e->pool);
		/* A pool that is idle by now may have completed since reap. */
		if (busy ? !fx_set_owner_sleep(engine->set) :
			   fx_set_has_completion(engine->set))
			return;
		if (fx_pool_stalled(&e->pool))
			fx_count(engine->counters, stalls);
		fx_count(engine->counters, sleeps);
	}
	n = fx_park_wait(&e->park, timeout_ns, &woken);
	fx_call_round();
	if (busy)
		fx_set_owner_awake(engine->set);
	if (woken) {
		drain(engine->set->owner_eventfd);
		if (e->park.wakefd != engine->set->owner_eventfd)
			drain(e->park.wakefd);
	}
	if (n > 0)
		e->idle_looks = 0;
	check_parked(e);
}

static void poll_interrupt(struct fx_engine *engine)
{
	fx_park_poke(&of(engine)->park);
}

static int poll_cancel(struct fx_engine *engine, uint32_t index)
{
	struct fx_poll *e = of(engine);
	struct flexsc_entry *entry = fx_set_entry(engine->set, index);

	if (fx_set_cancel(engine->set, index) == FX_CANCEL_DONE)
		return -EALREADY;
	if (fx_park_cancel(&e->park, index) || fx_pool_cancel(&e->pool, index))
		fx_run_over(&e->runner, index,
			    entry->ret > 0 && entry->nr != SYS_connect ?
				    entry->ret :
				    -ECANCELED);
	return 0;
}

static void poll_closing(struct fx_engine *engine, int fd)
{
	struct fx_poll *e = of(engine);
	uint32_t index;

	while ((index = fx_park_cancel_fd(&e->park, fd)) != FX_NO_ENTRY)
		fx_run_over(&e->runner, index, -ECANCELED);
	fx_park_reset(&e->park, fd, FX_KIND_UNKNOWN, false);
}

int fx_poll_patient(struct fx_engine *engine, int fd)
{
	return fx_park_patient(&of(engine)->park, fd);
}

bool fx_poll_moving(struct fx_engine *engine, int fd, int to)
{
	struct fx_poll *e = of(engine);
	uint32_t index;

	while ((index = fx_park_move(&e->park, fd, to)) != FX_NO_ENTRY)
		fx_run_over(&e->runner, index,
			    fx_set_entry(engine->set, index)->ret);
	fx_pool_move(&e->pool, fd, to);
	/* What was moved is tried by whoever waits for descriptors. */
	if (engine->publishes)
		fx_park_poke(&e->park);
	return !fx_park_nr_held(&e->park, fd);
}

static uint64_t poll_due(struct fx_engine *engine)
{
	return fx_park_due(&of(engine)->park);
}

static int poll_fd(struct fx_engine *engine)
{
	return of(engine)->park.epfd;
}

static bool poll_arm(struct fx_engine *engine)
{
	struct fx_poll *e = of(engine);

	e->idle_looks = 0; /* the next look is asked for */
	if (fx_local_has(e->base.set) || e->park.active)
		return false;
	if (!fx_pool_busy(&e->pool))
		return !fx_set_has_completion(engine->set);
	return fx_set_owner_sleep(engine->set);
}

const struct fx_engine_ops fx_engine_poll = {
	.name = "poll",
	.summary = "descriptor calls tried at once, parked on epoll",
	.usable = poll_usable,
	.new = poll_new,
	.free = poll_free,
	.abandon = poll_abandon,
	.attempt = poll_attempt,
	.made = fx_poll_made,
	.begin = poll_begin,
	.answered = poll_answered,
	.attempt_chain = poll_attempt_chain,
	.post = poll_post,
	.flush = poll_flush,
	.quiet = poll_quiet,
	.work = poll_work,
	.wait = poll_wait,
	.interrupt = poll_interrupt,
	.cancel = poll_cancel,
	.closing = poll_closing,
	.patient = fx_poll_patient,
	.moving = fx_poll_moving,
	.fd = poll_fd,
	.due = poll_due,
	.arm = poll_arm,
};
