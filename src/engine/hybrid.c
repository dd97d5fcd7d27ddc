/* SPDX-License-Identifier: MIT */
/*
 * Engine hybrid: engine poll, and while that pays, engine uthread. It begins
 * without a core thread. When the owner has been busy for a window of time and
 * another processor seems to be free, a core thread is tried, kept if more
 * gets done with it, and compared again now and then (engine/worth.h).
 *
 * Both engines work on one state, so a change is a matter of who carries
 * calls out from now on: what is parked stays where it is. Changes are made
 * in wait(), between two postings.
 */
#include "base/thread.h"
#include "engine/core.h"
#include "engine/engines.h"
#include "engine/trial.h"

#include <errno.h>
#include <stdlib.h>

/* A core thread that runs for less of a window is not alone there. */
#define CROWDED 0.8

struct hybrid {
	struct fx_uthread uthread;
	struct fx_trial trial;
	bool fixed; /* waited for elsewhere, on the descriptor of engine poll */
	/* At the beginning of the window. */
	uint64_t core_ns, core_sleeps;
};

static struct hybrid *of(struct fx_engine *engine)
{
	return fx_container_of(engine, struct hybrid, uthread.poll.base);
}

static bool with_core(struct fx_engine *engine)
{
	return engine->publishes;
}

/* The engine that it is at present. */
static const struct fx_engine_ops *now(struct fx_engine *engine)
{
	return with_core(engine) ? &fx_engine_uthread : &fx_engine_poll;
}

static uint64_t core_cpu_ns(struct hybrid *h)
{
	pid_t tid = fx_load_relaxed(&h->uthread.core_tid);

	/* Its pthread_t is the watcher's, who may just be replacing it. */
	return with_core(&h->uthread.poll.base) ? fx_thread_cpu_ns(tid) : 0;
}

static void begin_window(struct hybrid *h)
{
	const struct flexsc_counters *counters = h->uthread.poll.base.counters;

	fx_trial_begin(&h->trial, counters);
	h->core_ns = core_cpu_ns(h);
	h->core_sleeps = fx_load_relaxed(&counters->core_sleeps);
}

static void start(struct hybrid *h, uint64_t now_ns)
{
	cpu_set_t set;

	if (h->fixed || !fx_core_processors(&set) ||
	    !fx_trial_processor_free() || fx_uthread_start(&h->uthread))
		fx_worth_refuse(&h->trial.worth, now_ns);
}

static void end_window(struct hybrid *h, struct fx_worth_window *window)
{
	struct fx_engine *engine = &h->uthread.poll.base;

	if (fx_load_relaxed(&h->uthread.nr_stuck))
		return; /* somebody waits for storage: no time to compare */
	window->crowded = with_core(engine) &&
			  fx_load_relaxed(&engine->counters->core_sleeps) ==
				  h->core_sleeps &&
			  (double)(core_cpu_ns(h) - h->core_ns) <
				  CROWDED * (double)window->ns;
	switch (fx_worth_step(&h->trial.worth, window)) {
	case FX_WORTH_STAY:
		break;
	case FX_WORTH_START:
		start(h, window->now_ns);
		break;
	case FX_WORTH_STOP:
		fx_uthread_stop(&h->uthread);
		break;
	}
}

static void look(struct hybrid *h)
{
	struct fx_worth_window window;
	int saved = errno;

	switch (fx_trial_look(&h->trial, h->uthread.poll.base.counters,
			      &window)) {
	case FX_TRIAL_GOES_ON:
		break;
	case FX_TRIAL_OVER:
		end_window(h, &window);
		/* fall through */
	case FX_TRIAL_AGAIN:
		begin_window(h);
	}
	errno = saved;
}

/* The contract -------------------------------------------------------------- */

static bool hybrid_usable(char *reason, size_t size)
{
	if (!fx_engine_uthread.usable(reason, size))
		return false;
	snprintf(reason, size,
		 "is poll, and as uthread while another processor is free and "
		 "more gets done with it");
	return true;
}

static int hybrid_new(struct fx_engine **engine,
		      const struct fx_engine_config *config)
{
	struct hybrid *h = fx_poll_alloc(sizeof(*h));
	int bad;

	if (!h)
		return -ENOMEM;
	bad = fx_uthread_init(&h->uthread, &fx_engine_hybrid, config);
	if (bad) {
		free(h);
		return bad;
	}
	*engine = &h->uthread.poll.base;
	return 0;
}

static void hybrid_free(struct fx_engine *engine)
{
	fx_uthread_fini(&of(engine)->uthread);
	free(of(engine));
}

static void hybrid_abandon(struct fx_engine *engine)
{
	fx_uthread_abandon(&of(engine)->uthread);
	free(of(engine));
}

static bool hybrid_attempt(struct fx_engine *engine, struct flexsc_entry *call)
{
	return now(engine)->attempt(engine, call);
}

static unsigned hybrid_attempt_chain(struct fx_engine *engine,
				     struct flexsc_entry *calls, unsigned nr)
{
	return with_core(engine) ?
		       0 :
		       fx_engine_poll.attempt_chain(engine, calls, nr);
}

static void hybrid_post(struct fx_engine *engine, const uint32_t *indices,
			unsigned nr)
{
	now(engine)->post(engine, indices, nr);
}

static void hybrid_flush(struct fx_engine *engine)
{
	now(engine)->flush(engine);
}

static bool hybrid_quiet(struct fx_engine *engine)
{
	return with_core(engine) || fx_engine_poll.quiet(engine);
}

static void hybrid_work(struct fx_engine *engine, unsigned max)
{
	if (!with_core(engine))
		fx_engine_poll.work(engine, max);
}

static void hybrid_wait(struct fx_engine *engine, uint64_t timeout_ns)
{
	struct hybrid *h = of(engine);

	if (fx_trial_due(&h->trial))
		look(h);
	now(engine)->wait(engine, timeout_ns);
}

/* Any thread: of either engine's sleeps. */
static void hybrid_interrupt(struct fx_engine *engine)
{
	fx_engine_uthread.interrupt(engine);
}

static int hybrid_cancel(struct fx_engine *engine, uint32_t index)
{
	return now(engine)->cancel(engine, index);
}

static void hybrid_closing(struct fx_engine *engine, int fd)
{
	now(engine)->closing(engine, fd);
}

static int hybrid_fd(struct fx_engine *engine)
{
	struct hybrid *h = of(engine);

	if (with_core(engine))
		fx_uthread_stop(&h->uthread);
	h->trial.worth.state = FX_WORTH_WITHOUT;
	h->fixed = true;
	return fx_engine_poll.fd(engine);
}

static uint64_t hybrid_due(struct fx_engine *engine)
{
	return now(engine)->due(engine);
}

static bool hybrid_arm(struct fx_engine *engine)
{
	return now(engine)->arm(engine);
}

const struct fx_engine_ops fx_engine_hybrid = {
	.name = "hybrid",
	.summary = "poll, and as uthread while that pays",
	.usable = hybrid_usable,
	.new = hybrid_new,
	.free = hybrid_free,
	.abandon = hybrid_abandon,
	.attempt = hybrid_attempt,
	.made = fx_poll_made,
	.attempt_chain = hybrid_attempt_chain,
	.post = hybrid_post,
	.flush = hybrid_flush,
	.quiet = hybrid_quiet,
	.work = hybrid_work,
	.wait = hybrid_wait,
	.interrupt = hybrid_interrupt,
	.cancel = hybrid_cancel,
	.closing = hybrid_closing,
	.patient = fx_poll_patient,
	.moving = fx_poll_moving,
	.fd = hybrid_fd,
	.due = hybrid_due,
	.arm = hybrid_arm,
};
