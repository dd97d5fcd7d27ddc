/* SPDX-License-Identifier: MIT */
/*
 * The protocols of src/sched under every schedule: parking and waking, the
 * interrupt, ready tasks and stealing, idle sleep, taking a bundle, lending.
 * The code is the library's own headers and ready.c; a switch is a store that
 * says "saved". Each with the mistakes that it must not survive. Prints TAP.
 */
#include "model/explore.h"

#include "base/barrier.h"

#include <stdio.h>
#include <string.h>

static void model_barrier(void);
#undef fx_barrier_heavy
#define fx_barrier_heavy() model_barrier()

#include "sched/claim.h"
#include "sched/idle.h"
#include "sched/ready.c"

enum {
	RIGHT,
	EARLY_PUBLISH, /* parked before the context is saved */
	STORED_PUBLISH, /* published by a store: forgets the latch */
	NO_LATCH, /* a wake of a task that has not parked is dropped */
	NO_TICKET, /* a wake ends whatever parking there is */
	EARLY_LOOK, /* a flag is looked at before what it announces */
	STORED_HEAD, /* a thief moves the head by a store */
	NO_FENCE, /* who sleeps does not fence */
	NO_BARRIER, /* the watchdog looks without fx_barrier_heavy() */
	STORED_TAKE, /* the watchdog decides by a store */
	NO_GATE, /* a lent task is taken before it is saved */
	NO_FUTEX, /* who wakes a task at home forgets its kernel thread */
};
static unsigned int mistake;

#define NR_TASKS 6
#define NR_STOLEN 4

static struct {
	struct fx_task task[NR_TASKS];
	struct fx_ready ready[3]; /* of a holder each */
	struct fx_idle idle;
	struct fx_claim claim;
	uint64_t ticket[2]; /* told to the wakers */
	uint32_t saved[NR_TASKS];
	uint32_t sleeping, stop, given, phase, nr_ran;
	uint32_t inside, accesses; /* of the bundle */
	uint8_t ran[FX_MODEL_MAX_THREADS][NR_TASKS];
	uint8_t won[FX_MODEL_MAX_THREADS];
} mem;
static struct fx_model_sem sem;

static void model_barrier(void)
{
	if (mistake != NO_BARRIER)
		fx_model_membarrier();
}

static void setup(void)
{
	memset(&mem, 0, sizeof(mem));
	for (unsigned i = 0; i < NR_TASKS; i++) {
		mem.task[i].lender.lent = 1;
		mem.saved[i] = 1;
	}
	fx_model_region(&mem, sizeof(mem));
	fx_model_name("state", &mem.task[0].state, 8);
	fx_model_name("pending", &mem.task[0].pending, 4);
	fx_model_name("head[0]", &mem.ready[0].head, 8);
	fx_model_name("tail[0]", &mem.ready[0].tail, 8);
	fx_model_name("inbox[0]", &mem.ready[0].inbox, 8);
	fx_model_name("saved", mem.saved, sizeof(mem.saved));
	fx_model_name("sleeping", &mem.sleeping, 4);
	fx_model_name("nr_sleeping", &mem.idle.nr_sleeping, 4);
	fx_model_name("busy", &mem.claim.busy, 4);
	fx_model_name("claim", &mem.claim.word, 4);
	fx_model_sem_init(&sem);
}

static unsigned number_of(const struct fx_task *task)
{
	return (unsigned)(task - mem.task);
}

/* Take a task up: its context must be there. */
static void take_up(struct fx_task *task)
{
	unsigned n = number_of(task);

	fx_model_assert(n < NR_TASKS);
	fx_model_assert(fx_load_relaxed(&mem.saved[n]) == 1);
	fx_store_relaxed(&mem.saved[n], 0u);
	mem.ran[fx_model_self()][n]++;
}

static unsigned runs(unsigned n)
{
	unsigned sum = 0;

	for (unsigned t = 0; t < FX_MODEL_MAX_THREADS; t++)
		sum += mem.ran[t][n];
	return sum;
}

/* (a) One task parks twice; two wakers know of the first, one of the second. */

static bool publish(struct fx_task *task)
{
	bool ok;

	if (mistake == EARLY_PUBLISH) {
		ok = fx_task_publish(task, FX_TASK_PARKED);
		fx_store_relaxed(&mem.saved[0], 1u);
		return ok;
	}
	fx_store_relaxed(&mem.saved[0], 1u);
	if (mistake == STORED_PUBLISH) {
		uint64_t word = fx_load_relaxed(&task->state);

		if (fx_task_state(word) != FX_TASK_ARMED)
			return false;
		fx_store_release(&task->state,
				 (word & FX_TICKET_MASK) | FX_TASK_PARKED);
		return true;
	}
	return fx_task_publish(task, FX_TASK_PARKED);
}

/* The task's code, from one park to the next; false when it has ended. */
static bool task_runs(struct fx_task *task)
{
	uint32_t phase = fx_load_relaxed(&mem.phase);

	if (phase > 0)
		fx_model_assert(
			(unsigned)fx_task_take(task) ==
			(phase == 1 ? FX_WOKEN_VALUE : FX_WOKEN_TIMEOUT));
	fx_store_relaxed(&mem.phase, phase + 1);
	if (phase == 2) {
		fx_store_release(&mem.stop, 1u);
		return false;
	}
	fx_store_release(&mem.ticket[phase], fx_task_arm(task));
	return true;
}

static struct fx_task *next_of(struct fx_ready *ready)
{
	bool left;

	fx_ready_receive(ready, ready);
	return fx_ready_pop(ready, &left, false);
}

static void carry(struct fx_ready *ready)
{
	while (!fx_load_acquire(&mem.stop)) {
		struct fx_task *task = next_of(ready);

		if (!task) {
			fx_cpu_relax();
			continue;
		}
		take_up(task);
		if (task_runs(task) && !publish(task))
			fx_ready_push(ready, task);
	}
}

static void first_carrier(void)
{
	fx_ready_push(&mem.ready[0], &mem.task[0]);
	carry(&mem.ready[0]);
}

static void second_carrier(void)
{
	carry(&mem.ready[1]);
}

/* @to: the queue of this waker's carrier. */
static void wake_when_told(unsigned which, enum fx_reason reason,
			   struct fx_ready *to)
{
	struct fx_task *task = &mem.task[0];
	fx_ticket ticket;
	enum fx_wake result;

	while (!(ticket = fx_load_acquire(&mem.ticket[which])))
		fx_cpu_relax();
	if (mistake == NO_TICKET)
		ticket = fx_load_relaxed(&task->state) & FX_TICKET_MASK;
	if (mistake == NO_LATCH &&
	    fx_task_state(fx_load_relaxed(&task->state)) == FX_TASK_ARMED)
		return;
	result = fx_task_wake(task, ticket, reason);
	if (result == FX_WAKE_READY)
		fx_ready_post(to, task);
	if (result != FX_WAKE_LOST)
		mem.won[fx_model_self()]++;
}

static void waker(void)
{
	wake_when_told(0, FX_WOKEN_VALUE, &mem.ready[1]);
}

static void other_waker(void)
{
	wake_when_told(0, FX_WOKEN_VALUE, &mem.ready[0]);
	wake_when_told(1, FX_WOKEN_TIMEOUT, &mem.ready[1]);
}

static void check_parked_twice(void)
{
	fx_model_assert(runs(0) == 3);
	/* One of two won the first parking, one the second. */
	fx_model_assert(mem.won[2] + mem.won[3] == 2);
	fx_model_assert(fx_task_state(mem.task[0].state) == FX_TASK_RUNNING);
}

/* (b) Asked while parking: the asker or the parked one sees the other. */

static void interrupted(void)
{
	struct fx_task *task = &mem.task[0];

	fx_task_arm(task);
	fx_store_relaxed(&task->mask, FX_PENDING_SIGNAL);
	if (mistake == EARLY_LOOK)
		fx_load_relaxed(&task->pending);
	fx_store_relaxed(&mem.saved[0], 1u);
	if (!fx_task_publish(task, FX_TASK_PARKED))
		fx_ready_post(&mem.ready[0], task);
	else if (mistake != EARLY_LOOK && fx_load_relaxed(&task->pending) &&
		 fx_task_interrupt(task) == FX_WAKE_READY)
		fx_ready_post(&mem.ready[0], task);
	while (!(task = next_of(&mem.ready[0])))
		fx_cpu_relax();
	take_up(task);
	fx_model_assert(fx_task_take(task) == FX_WOKEN_SIGNAL);
	fx_model_assert(fx_task_asked(task, FX_PENDING_SIGNAL));
}

static void asker(void)
{
	struct fx_task *task = &mem.task[0];

	fx_task_ask(task, FX_PENDING_SIGNAL);
	if (fx_task_interrupt(task) == FX_WAKE_READY)
		fx_ready_post(&mem.ready[0], task);
}

static void check_once(void)
{
	fx_model_assert(runs(0) == 1);
}

/* (c) A holder, a thief, and one who posts; more than the ring holds. */

static void run_all(struct fx_ready *ready)
{
	struct fx_task *task;
	bool left;

	while ((task = fx_ready_pop(ready, &left, false)))
		take_up(task);
}

static void holder(void)
{
	for (unsigned i = 0; i < 5; i++)
		fx_ready_push(&mem.ready[0], &mem.task[i]);
	run_all(&mem.ready[0]);
	fx_ready_receive(&mem.ready[0], &mem.ready[0]);
	run_all(&mem.ready[0]);
}

static void small_holder(void)
{
	struct fx_task *task;
	bool left;

	fx_ready_push(&mem.ready[0], &mem.task[0]);
	fx_ready_push(&mem.ready[0], &mem.task[1]);
	task = fx_ready_pop(&mem.ready[0], &left, false);
	if (task)
		take_up(task);
	for (unsigned i = 2; i < NR_STOLEN; i++)
		fx_ready_push(&mem.ready[0], &mem.task[i]);
	run_all(&mem.ready[0]);
}

static struct fx_task *steal_wrongly(struct fx_ready *from)
{
	uint64_t head = fx_load_acquire(&from->head);

	if (head == fx_load_acquire(&from->tail))
		return NULL;
	fx_store_release(&from->head, head + 1);
	return fx_load_relaxed(&from->ring[head % FX_READY_RING]);
}

static void thief(void)
{
	struct fx_ready *mine = &mem.ready[fx_model_self()];
	struct fx_task *task;

	for (unsigned i = 0; i < 2; i++) {
		task = mistake == STORED_HEAD ?
			       steal_wrongly(&mem.ready[0]) :
			       fx_ready_steal(mine, &mem.ready[0]);
		if (task)
			take_up(task);
		run_all(mine);
	}
}

static void poster(void)
{
	fx_ready_post(&mem.ready[0], &mem.task[5]);
}

static void check_at_most_once(void)
{
	struct fx_task *task;
	unsigned left = 0;

	fx_ready_receive(&mem.ready[0], &mem.ready[0]);
	while ((task = next_of(&mem.ready[0]))) {
		fx_model_assert(runs(number_of(task)) == 0);
		left++;
	}
	for (unsigned i = 0; i < 5; i++)
		left += runs(i);
	fx_model_assert(left + runs(5) == 5 || left + runs(5) == 6);
	for (unsigned i = 0; i < NR_TASKS; i++)
		fx_model_assert(runs(i) <= 1);
}

static void check_all_run(void)
{
	for (unsigned i = 0; i < NR_STOLEN; i++)
		fx_model_assert(runs(i) == 1);
}

/* (d) A carrier sleeps while others post to its inbox. */

static void sleep_once(struct fx_ready *mine, struct fx_ready *other)
{
	if (mistake == NO_FENCE) {
		fx_store_relaxed(&mem.sleeping, 1u);
		fx_store_relaxed(&mem.idle.nr_sleeping, 1u);
	} else {
		fx_idle_begin(&mem.idle, &mem.sleeping);
	}
	if (!fx_ready_any(mine) && !fx_ready_any(other))
		fx_model_sem_wait(&sem);
	fx_idle_end(&mem.idle, &mem.sleeping);
}

static void sleeping_carrier(void)
{
	unsigned nr = 2;

	while (nr > 0) {
		struct fx_task *task = next_of(&mem.ready[0]);

		if (task) {
			take_up(task);
			nr--;
			continue;
		}
		sleep_once(&mem.ready[0], &mem.ready[0]);
	}
}

static void post_and_rouse(unsigned n)
{
	bool early = mistake == EARLY_LOOK && fx_idle_claim(&mem.sleeping);

	fx_ready_post(&mem.ready[0], &mem.task[n]);
	if (early || (mistake != EARLY_LOOK && fx_idle_claim(&mem.sleeping)))
		fx_model_sem_post(&sem);
}

static void first_poster(void)
{
	post_and_rouse(0);
}

static void second_poster(void)
{
	post_and_rouse(1);
}

static void check_two(void)
{
	fx_model_assert(runs(0) == 1 && runs(1) == 1);
}

/* (e) One has two and is busy with the first: who sleeps must get the other. */

static void rouse(void)
{
	if (!fx_idle_search(&mem.idle))
		return;
	if (fx_idle_claim(&mem.sleeping))
		fx_model_sem_post(&sem);
	else
		fx_idle_found(&mem.idle);
}

static void busy_holder(void)
{
	bool left = false;
	struct fx_task *task;

	fx_ready_push(&mem.ready[0], &mem.task[0]);
	fx_ready_push(&mem.ready[0], &mem.task[1]);
	if (mistake == EARLY_LOOK)
		rouse();
	task = fx_ready_pop(&mem.ready[0], &left, false);
	if (left && mistake != EARLY_LOOK)
		rouse();
	if (!task)
		return; /* both stolen */
	take_up(task);
	/* This task never gives way until the other has run. */
	fx_fetch_add(&mem.nr_ran, 1);
	while (fx_load_acquire(&mem.nr_ran) < 2)
		fx_cpu_relax();
}

static void sleeping_thief(void)
{
	for (;;) {
		struct fx_task *task =
			fx_ready_steal(&mem.ready[1], &mem.ready[0]);

		if (task) {
			fx_idle_found(&mem.idle);
			take_up(task);
			fx_fetch_add(&mem.nr_ran, 1);
			continue;
		}
		sleep_once(&mem.ready[1], &mem.ready[0]);
	}
}

/* (f) A bundle is taken, or not, and nobody else touches it. */

static void touch_bundle(void)
{
	uint32_t n;

	fx_model_assert(fx_load_relaxed(&mem.inside) == 0);
	fx_store_relaxed(&mem.inside, 1u);
	n = fx_load_relaxed(&mem.accesses);
	fx_store_relaxed(&mem.accesses, n + 1);
	fx_model_assert(fx_load_relaxed(&mem.inside) == 1);
	fx_store_relaxed(&mem.inside, 0u);
	mem.won[fx_model_self()]++;
}

static void carrier_comes_and_goes(void)
{
	for (unsigned i = 0; i < 2; i++) {
		if (!fx_claim_enter(&mem.claim)) {
			/* Lost for good: nobody gives it back. */
			fx_model_assert(fx_load_acquire(&mem.claim.word) ==
					FX_CLAIM_TAKEN);
			return;
		}
		touch_bundle();
		fx_claim_leave(&mem.claim);
	}
}

static bool take_wrongly(struct fx_claim *claim)
{
	fx_store_relaxed(&claim->word, (uint32_t)FX_CLAIM_PENDING);
	fx_barrier_heavy();
	if (fx_load_acquire(&claim->busy))
		return false;
	fx_store_relaxed(&claim->word, (uint32_t)FX_CLAIM_TAKEN);
	return true;
}

static void watchdog(void)
{
	bool taken = false;

	for (unsigned i = 0; i < 2 && !taken; i++)
		taken = mistake == STORED_TAKE ? take_wrongly(&mem.claim) :
						 fx_claim_take(&mem.claim);
	fx_store_release(&mem.given, taken ? 1u : 2u);
}

static void spare(void)
{
	uint32_t given;

	while (!(given = fx_load_acquire(&mem.given)))
		fx_cpu_relax();
	if (given == 1)
		touch_bundle();
}

static void check_accesses(void)
{
	fx_model_assert(mem.accesses == (uint32_t)mem.won[0] + mem.won[2]);
	if (mem.given == 1)
		fx_model_assert(mem.claim.word == FX_CLAIM_TAKEN);
}

/* (g) Posted before it is saved: not taken before it is lent. */

static void lender(void)
{
	struct fx_task *task = &mem.task[0];

	fx_store_relaxed(&mem.saved[0], 0u);
	fx_store_relaxed(&task->lender.lent, 0u);
	fx_ready_post(&mem.ready[0], task);
	fx_store_relaxed(&mem.saved[0], 1u);
	fx_store_release(&task->lender.lent, 1u);
}

static void receiver(void)
{
	struct fx_ready *ready = &mem.ready[0];
	struct fx_task *task;

	if (mistake == NO_GATE) {
		while (!(task = fx_exchange(&ready->inbox,
					    (struct fx_task *)NULL)))
			fx_cpu_relax();
	} else {
		while (!(task = next_of(ready)))
			fx_cpu_relax();
	}
	take_up(task);
}

/* (h) Parked, and perhaps sent home before it is woken. */

static void parked_once(void)
{
	struct fx_task *task = &mem.task[0];

	fx_store_release(&mem.ticket[0], fx_task_arm(task));
	fx_store_relaxed(&mem.saved[0], 1u);
	if (!fx_task_publish(task, FX_TASK_PARKED))
		fx_ready_post(&mem.ready[0], task);
	fx_store_release(&mem.phase, 1u);
	while (!fx_load_acquire(&mem.stop)) {
		task = next_of(&mem.ready[0]);
		if (!task) {
			fx_cpu_relax();
			continue;
		}
		take_up(task);
		fx_store_release(&mem.stop, 1u);
	}
}

static void home_waker(void)
{
	struct fx_task *task = &mem.task[0];
	fx_ticket ticket;

	while (!(ticket = fx_load_acquire(&mem.ticket[0])))
		fx_cpu_relax();
	switch (fx_task_wake(task, ticket, FX_WOKEN_VALUE)) {
	case FX_WAKE_READY:
		fx_ready_post(&mem.ready[0], task);
		break;
	case FX_WAKE_HOME:
		if (mistake != NO_FUTEX)
			fx_model_wake(&task->state, 1);
		break;
	case FX_WAKE_LATCHED:
		break;
	case FX_WAKE_LOST:
		fx_model_assert(!"nobody else wakes it");
	}
}

/* Sends it home, and is its own kernel thread then: wait_at_home(). */
static void mover(void)
{
	struct fx_task *task = &mem.task[0];
	uint64_t word;

	while (!fx_load_acquire(&mem.phase))
		fx_cpu_relax();
	if (!fx_task_move_home(task))
		return;
	take_up(task);
	while (fx_task_state(word = fx_load_acquire(&task->state)) !=
	       FX_TASK_WOKEN)
		fx_model_wait(&task->state, word, sizeof(word));
	fx_store_release(&mem.stop, 1u);
}

static const struct fx_model_scenario scenarios[] = {
	{ { .name = "park and wake",
	    .setup = setup,
	    .thread = { first_carrier, second_carrier, waker, other_waker },
	    .check = check_parked_twice },
	  FX_MISTAKE(EARLY_PUBLISH) | FX_MISTAKE(STORED_PUBLISH) |
		  FX_MISTAKE(NO_LATCH) | FX_MISTAKE(NO_TICKET) },
	{ { .name = "interrupt",
	    .setup = setup,
	    .thread = { interrupted, asker },
	    .check = check_once },
	  FX_MISTAKE(EARLY_LOOK) },
	{ { .name = "stealing",
	    .setup = setup,
	    .thread = { small_holder, thief, thief },
	    .check = check_all_run },
	  FX_MISTAKE(STORED_HEAD) },
	{ { .name = "overflow and inbox",
	    .setup = setup,
	    .thread = { holder, thief, poster },
	    .check = check_at_most_once },
	  FX_MISTAKE(STORED_HEAD) },
	{ { .name = "sleep and post",
	    .setup = setup,
	    .thread = { sleeping_carrier, first_poster, second_poster },
	    .check = check_two },
	  FX_MISTAKE(NO_FENCE) | FX_MISTAKE(EARLY_LOOK) },
	{ { .name = "sleep and steal",
	    .setup = setup,
	    .thread = { busy_holder, sleeping_thief },
	    .check = check_two,
	    .daemons = 1u << 1 },
	  FX_MISTAKE(NO_FENCE) | FX_MISTAKE(EARLY_LOOK) },
	{ { .name = "hand-off",
	    .setup = setup,
	    .thread = { carrier_comes_and_goes, watchdog, spare },
	    .check = check_accesses },
	  FX_MISTAKE(NO_BARRIER) | FX_MISTAKE(STORED_TAKE) },
	{ { .name = "moved home",
	    .setup = setup,
	    .thread = { parked_once, home_waker, mover },
	    .check = check_once },
	  FX_MISTAKE(NO_FUTEX) },
	{ { .name = "lending",
	    .setup = setup,
	    .thread = { lender, receiver },
	    .check = check_once },
	  FX_MISTAKE(NO_GATE) },
};

static const char *const mistake_names[] = {
	[EARLY_PUBLISH] = "published before saved",
	[STORED_PUBLISH] = "published by a store",
	[NO_LATCH] = "no latch",
	[NO_TICKET] = "no ticket",
	[EARLY_LOOK] = "flag looked at first",
	[STORED_HEAD] = "head moved by a store",
	[NO_FENCE] = "no fence",
	[NO_BARRIER] = "no heavy barrier",
	[STORED_TAKE] = "taken by a store",
	[NO_GATE] = "no gate",
	[NO_FUTEX] = "no futex wake",
};

int main(int argc, char **argv)
{
	return fx_model_main(argc > 1 ? argv[1] : NULL, scenarios,
			     FX_ARRAY_SIZE(scenarios), mistake_names, &mistake);
}
