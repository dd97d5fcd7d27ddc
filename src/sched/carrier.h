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
#define FX_MAX_CARRIERS 4096

struct fx_request;
struct fx_output;

/* Key: H holder; A anybody, atomically; I constant. */
struct fx_queue {
	struct fx_ready ready;
	uint32_t sleeping; /* A: see sched/idle.h */
	uint32_t now_ms; /* H; A to read: coarse clock of the last round */
	uint32_t waited; /* H; A to read: a task may wait for engine or timer */
	uint32_t index; /* I */
	int cpu; /* I: or -1 */
	struct fx_request *cancels; /* A: stack of calls to cancel */
	uint32_t move; /* A: fx_sched.moves is to be done here */
	struct fx_output *outputs, **last_output; /* H: see sched/output.c */
	uint32_t nr_outputs; /* H: that could be put off */
	uint32_t slice_ns, alone_ns, together_ns; /* H: lately */
	uint64_t began_ns; /* H: this round; 0: it is not timed */
	struct fx_timers_heap timers[FX_NR_CLOCKS]; /* H */
	struct fx_owner owner; /* H; set.owner_eventfd: I */
	struct fx_queue_counters count; /* H; A to read */
	struct fx_carrier *holder; /* watchdog */
	uint32_t stuck_switches; /* watchdog: as of its last tick */
	uint64_t stuck_cpu_ns; /* watchdog: of the holder, then */
	uint64_t stuck_since_ns; /* watchdog: the same, when it got stuck */
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
	uint32_t round; /* C: switches since the last round */
	uint32_t calls; /* C: calls that ended at once, the same */
	uint32_t limit; /* C: of switches in this round, FX_ROUND at most */
	struct fx_queue *queue; /* C; the watchdog while it is a spare */
	struct fx_task *left; /* C: what fx_finish() is about */
	enum fx_after after; /* C */
	uint64_t cpu_mark_ns; /* C: its CPU clock at the last switch; or 0 */
	struct fx_arch_context context; /* C: the scheduler's */
	uint32_t given; /* futex: a spare was given a queue, or is to end */
	struct fx_carrier *next; /* list of spares, or of ended ones, under
				    the lock */
	struct fx_carrier *all; /* list of all that run, the same */
	pthread_t thread;
	pid_t tid; /* C: of its kernel thread; A to read */
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

/* sched/call.c: what came back, and what is to be cancelled. */
unsigned fx_reap(struct fx_carrier *carrier);
void fx_cancel_asked(struct fx_carrier *carrier);

/*
 * sched/output.c: is @call the result of an answer that was made with others,
 * or by itself? The task is not inside any more then; else *@carrier is as by
 * fx_enter().
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
/* sched/carrier.c: the thread of a carrier. */
void *fx_carrier_main(void *carrier);

#endif /* FX_SCHED_CARRIER_H */
