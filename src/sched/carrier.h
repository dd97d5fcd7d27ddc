/* SPDX-License-Identifier: MIT */
/*
 * The inside of the scheduler: queues, carriers, and switching between tasks.
 *
 * A queue is what one core's tasks need and what moves as a whole when its
 * carrier is stuck: ready tasks, timers, page set with engine. A carrier is a
 * kernel thread, pinned to the core of the queue that it holds, with a stack
 * and a thread pointer of its own: the scheduler context.
 *
 * Switches go from task to task. What is to be done with the one that was left
 * (struct fx_carrier.after) is done by the next one, on its stack, when the
 * context is saved: fx_finish(). A carrier goes through its scheduler context
 * only when nothing is ready, or every FX_ROUND switches (FX_CALLS_A_ROUND
 * calls that did not wait), to look at engine, timers and inbox; so posting,
 * reaping and waiting are by one thread at a time.
 *
 * (flexsc-osdi10.txt, 4.2, figures 7 and 8.)
 */
#ifndef FX_SCHED_CARRIER_H
#define FX_SCHED_CARRIER_H

#include "base/futex.h"
#include "call/owner.h"
#include "sched/claim.h"
#include "sched/idle.h"
#include "sched/needed.h"
#include "sched/ready.h"
#include "sched/sched.h"
#include "sched/timer.h"

#include <pthread.h>
#include <sched.h>

#define FX_ROUND 64
/* Rounds so short are not timed: nothing is put off in them. */
#define FX_ROUND_TIMED 8
/* A task that only makes such calls looks busy to the watchdog. */
#define FX_CALLS_A_ROUND 256
/* Spare for so long, all but one end. */
#define FX_SPARE_IDLE_MS 3000
/* Not needed for so long, twice that at most, all end: see sched/needed.h */
#define FX_STOP_IDLE_MS 1000
#define FX_MAX_CARRIERS 4096
/* Also for handlers that are called in the middle of a call of ours. */
#define FX_SIGNAL_STACK_SIZE (128 * 1024)

struct fx_request;
struct fx_output;

/* For sched/resting.c. */
struct fx_queue_window {
	/* As of its beginning. */
	const struct fx_carrier *holder;
	uint64_t cpu_ns, asleep_ns, calls;
	uint32_t switches;
	/* In it: how long the carrier ran, and waited for its processor. */
	uint64_t ran_ns, crowded_ns;
};

/* Key: H holder; A anybody, atomically; I constant. */
struct fx_queue {
	struct fx_ready ready;
	uint32_t sleeping; /* A: see sched/idle.h */
	uint32_t rests; /* A: see sched/resting.c */
	struct fx_queue *heir; /* A: whose tasks its own are while it rests */
	uint64_t asleep_ns, asleep_since_ns; /* H; A to read: ever; now, or 0 */
	uint32_t now_ms; /* H; A to read: coarse clock of the last round */
	uint32_t waited; /* H; A to read: a task may wait for engine or timer */
	uint32_t index; /* I */
	int cpu; /* I: or -1 */
	struct fx_request *cancels; /* A: stack of calls to cancel */
	uint32_t move; /* A: fx_sched.moves is to be done here */
	struct fx_output *outputs, **last_output; /* H: see sched/output.c */
	uint32_t nr_outputs; /* H: calls among which are some to put off */
	bool output_due, output_pays; /* H: one is to be timed; by the times */
	uint32_t slice_ns, alone_ns, together_ns; /* H: lately */
	uint64_t began_ns; /* H: this round; 0: it is not timed */
	struct fx_timers_heap timers[FX_NR_CLOCKS]; /* H */
	struct fx_owner owner; /* H */
	bool started; /* `owner` is there; see sched/stop.c */
	int rousefd; /* I: set.owner_eventfd, which stays when that is closed */
	struct fx_queue_counters count; /* H; A to read */
	struct fx_carrier *holder; /* watchdog */
	uint32_t stuck_switches; /* watchdog: as of its last tick */
	uint64_t stuck_cpu_ns; /* watchdog: of the holder, then */
	uint64_t stuck_since_ns; /* watchdog: the same, when it got stuck */
	struct fx_queue_window window; /* watchdog */
};

enum fx_after {
	FX_AFTER_NOTHING,
	FX_AFTER_PARK,
	FX_AFTER_YIELD,
	FX_AFTER_HOME,
	FX_AFTER_LOST, /* the bundle is gone: to an inbox */
};

/* Key: C the carrier's thread; A anybody, atomically. */
struct fx_carrier {
	struct fx_claim claim; /* A */
	uint32_t switches; /* C; A to read */
	uint32_t crossing; /* C; A to read: carries calls out, in the kernel */
	uint32_t round; /* C: switches since the last round */
	uint32_t calls; /* C: calls that ended at once, the same */
	uint32_t limit; /* C: of switches in this round, FX_ROUND at most */
	struct fx_queue *queue; /* C; the watchdog while it is a spare */
	struct fx_task *left; /* C: what fx_finish() is about */
	enum fx_after after; /* C */
	uint64_t cpu_mark_ns; /* C: its CPU clock at the last switch; or 0 */
	struct fx_arch_context context; /* C: the scheduler's */
	uint32_t given; /* futex: enum fx_given; it waits as a spare */
	struct fx_carrier *next; /* list of spares, or of ended ones, under
				    the lock */
	struct fx_carrier *all; /* list of all that run, the same */
	pthread_t thread;
	pid_t tid; /* C: of its kernel thread; A to read */
	void *signal_stack; /* I: its alternate one, for tasks' faults */
};

enum fx_given {
	FX_GIVEN_NOTHING,
	FX_GIVEN_QUEUE, /* or it is to end */
	FX_GIVEN_WATCH, /* look again for how long to wait */
};

/*
 * Calls that are to keep their file; see sched/close.c. Key: B who has set
 * busy; A anybody, atomically.
 */
struct fx_moves {
	uint32_t busy; /* A */
	uint32_t left; /* A, futex: queues that have still to do it */
	int fd, to; /* B */
	struct fx_task *task; /* B: waits for it, with this ticket; or NULL */
	fx_ticket ticket;
};

struct fx_sched {
	uint32_t nr_queues; /* I */
	cpu_set_t allowed; /* I: processors, before anything was pinned */
	struct fx_queue **queue; /* I */
	struct fx_idle idle;
	uint32_t stop; /* A */
	struct fx_needed needed;
	struct fx_lock changing; /* all of it ends, or begins again */
	struct fx_owner_options options; /* I */
	char engine[32]; /* I: of them */
	uint32_t idle_ms; /* I */
	int filtered; /* I: PR_GET_SECCOMP at the beginning */
	uint32_t next_queue; /* A: for tasks that are new */
	struct fx_lock lock; /* the lists below; never held at a wake-up */
	struct fx_carrier *spares, *carriers;
	struct fx_carrier *ended; /* memory for new ones */
	uint32_t nr_spares, nr_carriers;
	uint64_t nr_made; /* carriers, ever */
	uint64_t closes_moved; /* A */
	uint32_t watch_asleep; /* futex, A */
	uint32_t count_cpu; /* A: see sched/cpu.c */
	struct fx_moves moves;
	uint32_t nr_resting, rests_changed; /* A: see sched/resting.c */
	pid_t pid; /* I */
	pthread_t watchdog;
	bool watched;
};

extern struct fx_sched fx_sched __attribute__((visibility("hidden")));

extern __thread struct fx_task *fx_task_self
	__attribute__((tls_model("initial-exec"), visibility("hidden")));

/**
 * fx_enter - the calling task is about to touch its carrier's bundle
 *
 * May switch: afterwards it may be on another carrier, if its own had lost
 * its bundle. Between fx_enter() and fx_leave() it is not taken away.
 *
 * Return: the carrier, or NULL if the task is at home: no fx_leave() then.
 */
struct fx_carrier *fx_enter_slow(struct fx_task *me);

static inline struct fx_carrier *fx_enter(struct fx_task *me)
{
	struct fx_carrier *carrier = me->carrier;

	if (fx_unlikely(!carrier) || fx_likely(fx_claim_enter(&carrier->claim)))
		return carrier;
	return fx_enter_slow(me);
}

static inline void fx_leave(struct fx_carrier *carrier)
{
	fx_claim_leave(&carrier->claim);
}

/* sched/cpu.c: @me, or the scheduler context, has run until now. */
void fx_cpu_switch(struct fx_carrier *carrier, struct fx_task *me);

/* Make the next switch; fx_finish() on the other side. */
static inline void fx_switch(struct fx_carrier *carrier, struct fx_task *me,
			     struct fx_task *next, enum fx_after after)
{
	fx_probe2(switch, me, next);
	carrier->left = me;
	carrier->after = after;
	fx_store_relaxed(&carrier->switches, carrier->switches + 1);
	if (fx_unlikely(fx_load_relaxed(&fx_sched.count_cpu)))
		fx_cpu_switch(carrier, me);
	if (next) {
		next->carrier = carrier;
		fx_store_relaxed(&next->queue, carrier->queue);
	}
	fx_arch_handed_on(next ? (void *)next : (void *)carrier);
	fx_arch_switch(me ? &me->context : &carrier->context,
		       next ? &next->context : &carrier->context);
	fx_arch_taken_up(me ? (void *)me : (void *)carrier);
}

/* What the one before wanted done once it was off its stack. */
void fx_finish(struct fx_carrier *carrier);

/* The next task to run, NULL: the scheduler context is to look. */
struct fx_task *fx_pick(struct fx_carrier *carrier);

/**
 * fx_away - leave the stack of @me until it is to go on
 *
 * Context: inside fx_enter(). Return: as fx_enter(): the carrier now, or NULL
 * at home.
 */
struct fx_carrier *fx_away(struct fx_carrier *carrier, struct fx_task *me,
			   enum fx_after after);

/* The same if it is known what is to run next: fx_pick() has said so. */
struct fx_carrier *fx_away_to(struct fx_carrier *carrier, struct fx_task *me,
			      struct fx_task *next, enum fx_after after);

/* A task that the caller has woken; @carrier NULL: from outside. */
void fx_make_ready(struct fx_carrier *carrier, struct fx_task *task);

/* Into an inbox, and wake who sleeps on it. Any thread, signal handlers. */
void fx_send_ready(struct fx_queue *queue, struct fx_task *task);
void fx_rouse(struct fx_queue *queue);

/* Let its own kernel thread go on with a task; nobody runs it. */
void fx_give_home(struct fx_task *task);

/* fx_wake() by who holds a queue and is inside. */
bool fx_wake_inside(struct fx_carrier *carrier, struct fx_task *task,
		    fx_ticket ticket, enum fx_reason reason);

/* A call is posted. Context: holder. */
static inline void fx_call_count(struct fx_queue *queue, unsigned int nr)
{
	fx_count(&queue->count, calls);
	if (fx_likely(nr < FLEXSC_COUNTERS_CALLS))
		fx_count(queue->owner.counters, calls[nr]);
}

/* sched/call.c: what came back, and what is to be cancelled. */
unsigned fx_reap(struct fx_carrier *carrier);
void fx_cancel_asked(struct fx_carrier *carrier);

/* sched/output.c. With fewer others ready no answer is put off. */
#define FX_OUTPUTS_LEAST 4
#define FX_OUTPUT_SAMPLE 64 /* calls; one answer then is made alone, for its time */
#define FX_OUTPUT_TRIAL 4096 /* calls, and those of them in a row */
#define FX_OUTPUT_TRIAL_PART 96

/* Is something to be done about an answer, if this call is one? */
static inline bool fx_output_gathers(struct fx_queue *queue)
{
	uint32_t number = ++queue->nr_outputs;

	if (fx_unlikely(number % FX_OUTPUT_SAMPLE == 0))
		queue->output_due = true;
	return queue->output_pays || queue->output_due ||
	       number % FX_OUTPUT_TRIAL < FX_OUTPUT_TRIAL_PART;
}

/*
 * Is @call, an answer, over: made with others, or by itself? The task is not
 * inside any more then; else *@carrier is as by fx_enter().
 */
bool fx_output(struct fx_carrier **carrier, struct fx_task *me,
	       struct flexsc_entry *call, const char *where);
void fx_output_all(struct fx_carrier *carrier);
void fx_output_round_ends(struct fx_carrier *carrier);
void fx_output_round_begins(struct fx_carrier *carrier);

/* sched/close.c */
void fx_move_asked(struct fx_carrier *carrier);
int64_t fx_call_closing(struct fx_task *me, struct flexsc_entry *call,
			int64_t (*make)(struct fx_task *me,
					struct flexsc_entry *call));

/* sched/resting.c: how many carriers run, by load. The watchdog's: */
void fx_resting_tick(void);
void fx_resting_pause(void); /* no ticks for a while */
void fx_resting_reset(void);
void fx_resting_rouse(void); /* by a carrier: rests_changed */

/* Whose carrier runs what is ready in @queue. Any thread. */
static inline struct fx_queue *fx_running_queue(struct fx_queue *queue)
{
	while (fx_unlikely(fx_load_relaxed(&queue->rests)))
		queue = fx_load_relaxed(&queue->heir);
	return queue;
}

/* Is there a processor for another carrier? */
static inline bool fx_processor_idle(void)
{
	return fx_load_relaxed(&fx_sched.idle.nr_sleeping) ||
	       fx_load_relaxed(&fx_sched.nr_resting);
}

/* sched/watchdog.c */
int fx_watchdog_start(void);
void fx_watchdog_stop(void);
void fx_watchdog_needed_slow(void);

static inline void fx_watchdog_needed(void)
{
	if (fx_unlikely(fx_load_relaxed(&fx_sched.watch_asleep)))
		fx_watchdog_needed_slow();
}

/* sched/sched.c */
struct fx_carrier *fx_carrier_new(struct fx_queue *queue);
/* Carriers and watchdog of queues that are there. */
int fx_carriers_begin(void);
/* The same, but for @but; what they held is nobody's. */
void fx_carriers_end(const struct fx_carrier *but);

/* sched/stop.c */
int fx_queue_start(struct fx_queue *queue);
void fx_queue_stop(struct fx_queue *queue);
/*
 * Return: true: all has ended, and nothing of the calling carrier is its own
 * any more.
 */
bool fx_sched_stop(struct fx_carrier *spare, uint64_t count);
/* sched/carrier.c: the thread of a carrier. */
void *fx_carrier_main(void *carrier);

#endif /* FX_SCHED_CARRIER_H */
