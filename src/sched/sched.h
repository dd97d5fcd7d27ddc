/* SPDX-License-Identifier: MIT */
/*
 * FlexSC-Threads without POSIX: M tasks on N carriers. What src/threads builds
 * on; nothing here knows pthreads' objects.
 *
 * A task is a real thread of the C library. It begins life at home, on its own
 * kernel thread, with fx_task_attach(); fx_task_lend() gives its stack and
 * thread pointer to the carriers while its kernel thread waits; fx_go_home()
 * comes back, for whatever depends on the kernel's idea of a thread. All
 * functions work in both places: at home a park waits on a futex, a call is
 * plain. A thread that must never be lent is a task all the same, so the two
 * kinds can wait for each other.
 *
 *	self = fx_task_attach(memory);    fx_task_lend(self);
 *	...
 *	ticket = fx_task_arm(self);       then tell it to who may wake
 *	reason = fx_park(self, "mutex", deadline, 0);
 *	...
 *	fx_wake(task, ticket, FX_WOKEN_VALUE);     anybody, once
 *	...
 *	fx_go_home(self); fx_task_detach(self);
 *
 * Context, unless said otherwise: the task itself, not in a signal handler.
 * Every function that may switch is a yield point; errno is left alone.
 */
#ifndef FX_SCHED_SCHED_H
#define FX_SCHED_SCHED_H

#include "page/shown.h"
#include "sched/task.h"

#include <linux/flexsc.h>
#include <sched.h>

enum fx_clock {
	FX_CLOCK_MONOTONIC,
	FX_CLOCK_REALTIME,
	FX_NR_CLOCKS
};

/* A moment; NULL where a deadline is asked for means none. */
struct fx_deadline {
	uint64_t at_ns; /* absolute */
	enum fx_clock clock;
};

struct fx_sched_options {
	const char *engine; /* name or "auto"; NULL: poll */
	uint32_t nr_carriers; /* 0: one for each allowed processor */
	uint32_t max_entries; /* of each page set; 0: default */
	uint32_t max_threads; /* of each engine's pool; 0: default */
	uint32_t idle_ms; /* not needed for so long, all ends; 0: default */
	bool no_pinning;
};

/*
 * What a queue counts, written by its holder alone; observers know the names.
 * handoffs_running: of handoffs, those of tasks that ran long; calls_together:
 * answers made in a row with others; rests: how often it was sent to rest, by
 * the watchdog.
 */
#define FX_QUEUE_COUNTERS(x)                                             \
	x(parks) x(yields) x(rounds) x(sleeps) x(steals) x(homes)        \
	x(received) x(timeouts) x(handoffs) x(handoffs_running) x(calls) \
	x(calls_parked) x(cancels) x(calls_together) x(rests)

struct fx_queue_counters {
	FX_QUEUE_COUNTERS(FX_COUNTER_FIELD)
};

/**
 * fx_sched_init - start carriers and watchdog
 *
 * Context: once a process, any thread. Return: 0 or -errno.
 */
int fx_sched_init(const struct fx_sched_options *options);

/* End them. No task may be lent. */
void fx_sched_fini(void);

/**
 * fx_sched_need - a task that is to be lent will be made
 *
 * While nobody needs carriers they, the watchdog and the engines may end. They
 * begin again here. Context: any thread, no signal handler.
 *
 * Return: 0; -errno if they cannot: no task may be lent then.
 */
int fx_sched_need(void);

/* It is at home, and will not be lent any more; or it was not made. */
void fx_sched_need_not(void);

/**
 * fx_sched_after_fork - in the child: only the forking thread is left
 *
 * It is at home, if it is a task: its stack and thread pointer are now those
 * of the only kernel thread, which has the signal mask of the carrier that
 * forked, and the affinity that the process began with. All else is gone,
 * other tasks too; fx_sched_init() may follow.
 *
 * Context: the child's thread, before it does anything here. The fork must
 * not have been made from inside of this layer.
 */
void fx_sched_after_fork(void);

uint32_t fx_sched_nr_queues(void);
/* Name of the engine in use. */
const char *fx_sched_engine(void);
/* A copy; fields may be of different moments. Any thread. */
void fx_sched_counters(uint32_t queue, struct fx_queue_counters *counters);

/* Of carriers; for observers. */
struct fx_carrier_counters {
	uint64_t carriers, spares, sleeping; /* now; spares wait for a queue */
	uint64_t resting; /* now: the load does without them */
	uint64_t made, ended; /* since the beginning */
	uint64_t closes_moved; /* closes that had to move what waits */
};

/* Any thread; fields may be of different moments. */
void fx_sched_carriers(struct fx_carrier_counters *counters);

/* What a task is doing, for observers. */
struct fx_task_look {
	enum fx_task_state state;
	bool at_home; /* on its own kernel thread, parked or not */
	const char *where; /* parked: for what, else NULL */
	uint32_t since_ms; /* parked: fx_now_ms_coarse() of then */
};

/* Tell observers of other processes where queues, carriers and tasks are. */
struct flexsc_process;
void fx_sched_observe(struct flexsc_process *process);

/* Any thread that keeps the task from ending; true at some time lately. */
void fx_task_look(const struct fx_task *task, struct fx_task_look *look);

/**
 * fx_task_attach - the calling thread becomes a task, at home
 * @task: zeroed memory, or one that was detached, without pending bits but
 *        those that fx_interrupt() has set for this life; 64-byte aligned,
 *        never to be used for anything but tasks again (see sched/task.h)
 * @parking_stack: upper end of a stack for signals that reach the kernel
 *        thread while it is lent; NULL if it never is
 */
void fx_task_attach(struct fx_task *task, void *parking_stack);

/*
 * The thread is about to end, or goes on without us. At home, not armed. What
 * is pending stays so: until now it could be asked, and the caller answers.
 */
void fx_task_detach(struct fx_task *task);

/* The calling task; NULL in threads that are none. */
static inline struct fx_task *fx_task_current(void);

/**
 * fx_task_lend - run on carriers from now on
 *
 * Returns on a carrier. No-op if there already.
 */
void fx_task_lend(struct fx_task *me);

/**
 * fx_go_home - run on the own kernel thread from now on
 *
 * Returns there; the kernel thread's id, affinity, policy, credentials are the
 * task's again. No-op at home. It does not wait for posted calls: fx_call()
 * has none left when it returns.
 */
void fx_go_home(struct fx_task *me);

/**
 * fx_send_home - the same for a task that is parked; its parking goes on there
 *
 * Context: any thread. The task must be kept from ending by the caller.
 * Return: false if it was not parked: ask it to go itself.
 */
bool fx_send_home(struct fx_task *task);

static inline bool fx_task_at_home(const struct fx_task *me)
{
	return !me->carrier;
}

/**
 * fx_park - wait for the wake that fx_task_arm()'s ticket was given for
 * @where: what for, a constant; for observers
 * @deadline: or NULL
 * @mask: FX_PENDING_ bits that end it too, at once if they are set already
 *
 * Return: why it ended. FX_WOKEN_VALUE: exactly one waker won, and it was not
 * told that it lost. Otherwise every waker is, or will be: so a hand-over
 * (mutex, semaphore) cannot go to one who has given up.
 */
enum fx_reason fx_park(struct fx_task *me, const char *where,
		       const struct fx_deadline *deadline, uint32_t mask);

/**
 * fx_park_last - fx_park() of a task that has something to give away
 * @last: called once, when it is known who runs next here: a task that has
 *        been woken and belongs to the caller until it runs, or NULL. It must
 *        not park, and what it wakes is run late.
 */
enum fx_reason fx_park_last(struct fx_task *me, const char *where,
			    const struct fx_deadline *deadline, uint32_t mask,
			    void (*last)(void *arg, struct fx_task *next),
			    void *arg);

/**
 * fx_wake - end a parking
 *
 * Context: any thread, signal handlers too.
 * Return: true if the caller was the one that ended it.
 */
bool fx_wake(struct fx_task *task, fx_ticket ticket, enum fx_reason reason);

/**
 * fx_interrupt - ask for something of a task, and end its parking if that
 * listens; otherwise the bits stay set until fx_task_asked()
 *
 * Context: any thread, signal handlers too.
 */
void fx_interrupt(struct fx_task *task, uint32_t bits);

/**
 * fx_interrupt_outside - the same from the task's own kernel thread
 * @signal: sent to the carrier's kernel thread if the task is running; 0: none
 *
 * Context: a signal handler on the task's own kernel thread while the task is
 * elsewhere, with the task's thread pointer; or where it is the caller itself.
 */
void fx_interrupt_outside(struct fx_task *task, uint32_t bits, int signal);

/* On a carrier: in the middle of something of this layer? Handlers. */
bool fx_task_busy(const struct fx_task *me);

/* The thread pointer that belongs to the kernel thread under @me; 0 at home. */
uint64_t fx_carrier_thread_pointer(const struct fx_task *me);

/**
 * fx_task_cpu_ns - CPU time that a task has used on carriers
 *
 * Counted since fx_task_count_cpu(), once a process; of another task that is
 * just switching perhaps only until then.
 */
uint64_t fx_task_cpu_ns(struct fx_task *task);
void fx_task_count_cpu(void);

/* Let the calling kernel thread run where the process began. */
void fx_sched_unpin(void);
/* Does @set leave out processors that the process began with? */
bool fx_sched_restricts(const cpu_set_t *set);

/* Let others run first. */
void fx_yield(struct fx_task *me);

/* Return: FX_WOKEN_TIMEOUT, or what of @mask came. */
enum fx_reason fx_sleep(struct fx_task *me, const struct fx_deadline *until,
			uint32_t mask);

/**
 * fx_call - carry out a system call, parking the task while it waits
 * @call: number, number of arguments, arguments; flags and ret 0
 * @deadline: or NULL; then it is cancelled
 * @mask: FX_PENDING_ bits that cancel it too
 * @reason: why it was cancelled, 0 if it was not; or NULL
 *
 * A call that was cancelled and had an effect returns its own result all the
 * same, else -ECANCELED. At home the call is made as it is, in the kernel,
 * without deadline and mask. Never returns with the call in flight.
 *
 * Calls that close descriptors take neither; @me may be NULL for them, in a
 * thread that is no task. Every thread that closes a descriptor on which tasks
 * may wait has to do it so, or between the two below.
 *
 * Return: result or -errno.
 */
int64_t fx_call(struct fx_task *me, struct flexsc_entry *call,
		const char *where, const struct fx_deadline *deadline,
		uint32_t mask, enum fx_reason *reason);

/* How a call is waited for: arguments of fx_call(). */
struct fx_wait {
	const char *where;
	const struct fx_deadline *deadline;
	uint32_t mask;
};

/**
 * fx_call_begin - the first half of fx_call(): what can be done at once, is
 * @call: it closes nothing
 *
 * Return: 0: it is over, call->ret is the result. Otherwise fx_call_rest() is to
 * follow at once, and to be given what was returned.
 */
unsigned fx_call_begin(struct fx_task *me, struct flexsc_entry *call);
int64_t fx_call_rest(struct fx_task *me, struct flexsc_entry *call,
		     unsigned begun, const struct fx_wait *wait,
		     enum fx_reason *reason);

/**
 * fx_closing_begin - a descriptor will be closed, by whom we cannot see
 * @me: the calling task, in either place; NULL in a thread that is none
 *
 * Tasks that wait on it keep its file and go on waiting, as threads of the
 * kernel do (engine/hold.h). May switch.
 *
 * Return: true if fx_closing_end() must follow once it is closed, or not.
 */
bool fx_closing_begin(struct fx_task *me, int fd);
void fx_closing_end(int fd);

extern __thread struct fx_task *fx_task_self
	__attribute__((tls_model("initial-exec"), visibility("hidden")));

static inline struct fx_task *fx_task_current(void)
{
	return fx_task_self;
}

#endif /* FX_SCHED_SCHED_H */
