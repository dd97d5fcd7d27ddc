/* SPDX-License-Identifier: MIT */
/*
 * Calls of tasks under every schedule: a posted call that completes, times out
 * and is cancelled (sched/request.h); a ring of which nobody steals; and calls
 * that keep their file while others close the descriptor (engine/hold.h).
 * Each with the mistakes that it must not survive. Prints TAP.
 */
#include "model/explore.h"

#include "base/barrier.h"

#include <stdio.h>
#include <string.h>

#include "engine/hold.h"
#include "sched/ready.c"
#include "sched/request.h"

enum {
	RIGHT,
	THIEF, /* somebody steals from a ring that is said to be alone */
	NO_NOTICE_WAIT, /* the completion wakes even if a notice is coming */
	STORED_GIVE_UP, /* the task gives up by a store */
	NO_EPOCH, /* a hold of a number that was closed since the try */
	NO_CLOSING, /* a hold while the number is being closed */
	NO_HOLD, /* parked without one */
	NO_MOVE, /* closed without waiting for the queue */
};
static unsigned int mistake;

#define NR_TASKS 4
enum file {
	NONE,
	OLD,
	NEW
};

static struct {
	struct fx_task task[NR_TASKS];
	struct fx_ready ready[2];
	struct fx_request request;
	struct fx_request *notice;
	fx_ticket ticket;
	uint32_t live, over, nr_ran[FX_MODEL_MAX_THREADS][NR_TASKS];
	uint64_t word[2]; /* of the number, and of the private one */
	uint32_t file[2]; /* what is behind them */
	uint32_t move, tries;
} mem;

static void setup(void)
{
	memset(&mem, 0, sizeof(mem));
	for (unsigned i = 0; i < NR_TASKS; i++)
		mem.task[i].lender.lent = 1;
	mem.live = 1;
	mem.file[0] = OLD;
	fx_model_region(&mem, sizeof(mem));
	fx_model_name("state", &mem.task[0].state, 8);
	fx_model_name("request", &mem.request.word, 8);
	fx_model_name("word", mem.word, sizeof(mem.word));
	fx_model_name("file", mem.file, sizeof(mem.file));
	fx_model_name("move", &mem.move, 4);
}

/* (a) A ring of which nobody steals: plain stores are enough. */

static void ran(struct fx_task *task)
{
	mem.nr_ran[fx_model_self()][task - mem.task]++;
}

static void lone_holder(void)
{
	struct fx_task *task;
	bool left;

	fx_ready_push(&mem.ready[0], &mem.task[0]);
	fx_ready_push(&mem.ready[0], &mem.task[1]);
	for (unsigned i = 0; i < 3; i++) {
		fx_ready_receive(&mem.ready[0], &mem.ready[0]);
		while ((task = fx_ready_pop(&mem.ready[0], &left, true)))
			ran(task);
	}
}

static void poster(void)
{
	fx_ready_post(&mem.ready[0], &mem.task[2]);
}

static void other_poster(void)
{
	struct fx_task *task;

	if (mistake != THIEF) {
		fx_ready_post(&mem.ready[0], &mem.task[3]);
		return;
	}
	task = fx_ready_steal(&mem.ready[1], &mem.ready[0]);
	if (task)
		ran(task);
}

static void check_each_once(void)
{
	struct fx_task *task;
	bool left;

	fx_ready_receive(&mem.ready[0], &mem.ready[0]);
	for (unsigned i = 0; i < 2; i++)
		while ((task = fx_ready_pop(&mem.ready[i], &left, true)))
			mem.nr_ran[0][task - mem.task]++;
	for (unsigned i = 0; i < NR_TASKS; i++) {
		uint32_t sum = 0;

		for (unsigned t = 0; t < FX_MODEL_MAX_THREADS; t++)
			sum += mem.nr_ran[t][i];
		fx_model_assert(sum == (i < 3 || mistake != THIEF));
	}
}

/* (b) A call: the task at home, the holder, and the deadline. */

static enum fx_reason park(struct fx_task *task)
{
	uint64_t word;

	if (fx_task_publish(task, FX_TASK_HOME))
		while (fx_task_state(word = fx_load_acquire(&task->state)) !=
		       FX_TASK_WOKEN)
			fx_model_wait(&task->state, word, sizeof(word));
	return fx_task_take(task);
}

static void wake(fx_ticket ticket, enum fx_reason reason)
{
	if (fx_task_wake(&mem.task[0], ticket, reason) == FX_WAKE_HOME)
		fx_model_wake(&mem.task[0].state, 1);
}

static bool give_up(fx_ticket first)
{
	if (mistake != STORED_GIVE_UP)
		return fx_request_give_up(&mem.request, first);
	if (fx_load_acquire(&mem.request.word) != first)
		return false;
	fx_store_release(&mem.request.word,
			 mem.request.second | FX_REQUEST_CANCELLING);
	return true;
}

/* As fx_call(), whose frame is gone when it returns. */
static void caller(void)
{
	struct fx_task *task = &mem.task[0];
	fx_ticket ticket = fx_task_arm(task);

	fx_store_release(&mem.request.word, ticket);
	fx_store_release(&mem.ticket, ticket);
	if (park(task) != FX_WOKEN_VALUE) {
		mem.request.second = fx_task_arm(task);
		if (give_up(ticket)) {
			fx_store_release(&mem.notice, &mem.request);
			fx_model_assert(park(task) == FX_WOKEN_VALUE);
		} else {
			fx_task_disarm(task);
		}
	}
	fx_model_assert(mem.request.ret == 7);
	fx_store_release(&mem.live, 0u);
}

static void complete(void)
{
	fx_ticket ticket;

	fx_model_assert(fx_load_relaxed(&mem.live) == 1);
	ticket = fx_request_complete(&mem.request, 7);
	if (mistake == NO_NOTICE_WAIT && !ticket)
		ticket = mem.request.second;
	if (ticket)
		wake(ticket, FX_WOKEN_VALUE);
}

static void queue_holder(void)
{
	bool completed = false, cancelled = false;
	fx_ticket ticket;

	while (!fx_load_acquire(&mem.ticket))
		fx_cpu_relax();
	while (fx_load_acquire(&mem.live)) {
		if (fx_load_acquire(&mem.notice)) {
			fx_store_relaxed(&mem.notice,
					 (struct fx_request *)NULL);
			fx_model_assert(fx_load_relaxed(&mem.live) == 1);
			ticket = fx_request_notice(&mem.request);
			if (ticket)
				wake(ticket, FX_WOKEN_VALUE);
			else
				cancelled = true;
		}
		if (!completed && (cancelled || fx_model_choose(2))) {
			complete();
			completed = true;
		} else {
			fx_cpu_relax();
		}
	}
}

static void deadline(void)
{
	fx_ticket ticket;

	while (!(ticket = fx_load_acquire(&mem.ticket)))
		fx_cpu_relax();
	wake(ticket, FX_WOKEN_TIMEOUT);
}

static void check_over(void)
{
	fx_model_assert(!mem.live);
}

/* (c) A call on a queue, its holder, and two who close the number. */

static enum fx_hold take(uint32_t epoch)
{
	uint64_t old = fx_load_relaxed(&mem.word[0]);

	if (mistake == NO_HOLD)
		return FX_HOLD_TAKEN;
	if (mistake == NO_EPOCH && !(old & FX_HOLD_CLOSING))
		epoch = fx_hold_epoch(old);
	if (mistake == NO_CLOSING && old & FX_HOLD_CLOSING) {
		fx_fetch_add(&mem.word[0], UINT64_C(1));
		return FX_HOLD_TAKEN;
	}
	return fx_hold_take(&mem.word[0], (uint16_t)epoch);
}

/* What the holder of the queue does between two tries. */
static unsigned move_if_asked(unsigned fd)
{
	if (!fx_load_acquire(&mem.move))
		return fd;
	fx_hold_add(&mem.word[1]);
	fx_model_assert(!fx_hold_drop(&mem.word[0]));
	fx_store_release(&mem.move, 0u);
	return 1;
}

/* The holder stays, and answers for a call that is gone. */
static void serve(void)
{
	while (!fx_load_acquire(&mem.over)) {
		if (fx_load_acquire(&mem.move))
			fx_store_release(&mem.move, 0u);
		fx_cpu_relax();
	}
}

/* Return: the file that it is parked on; NONE: it ended with EBADF. */
static uint32_t begin(void)
{
	for (;;) {
		uint32_t epoch = fx_hold_epoch(fx_load_acquire(&mem.word[0]));
		uint32_t file = fx_load_acquire(&mem.file[0]);

		if (file == NONE)
			return NONE;
		switch (take(epoch)) {
		case FX_HOLD_TAKEN:
			return file;
		case FX_HOLD_LATER:
			fx_cpu_relax();
			break;
		case FX_HOLD_STALE:
			break;
		}
	}
}

/* Not ready, parked, tried again: on the file that it was parked on. */
static void waiting_call(void)
{
	uint32_t file = begin();
	unsigned fd = 0;

	for (unsigned i = 0; file != NONE && i < 3; i++) {
		fx_model_assert(fx_load_acquire(&mem.file[fd]) == file);
		if (fd == 0 && mistake != NO_HOLD)
			fd = move_if_asked(fd);
	}
	if (file != NONE && mistake != NO_HOLD && fx_hold_drop(&mem.word[fd]))
		fx_store_release(&mem.file[fd], (uint32_t)NONE);
	serve();
}

static void closer(void)
{
	enum fx_closing how;

	while ((how = fx_hold_close_begin(&mem.word[0])) == FX_CLOSING_OTHER)
		fx_cpu_relax();
	if (how == FX_CLOSING_HELD) {
		fx_store_release(&mem.file[1], fx_load_acquire(&mem.file[0]));
		fx_fetch_add(&mem.word[1], FX_HOLD_PRIVATE + 1);
		fx_exchange(&mem.move, 1u);
		while (mistake != NO_MOVE && fx_load_acquire(&mem.move))
			fx_cpu_relax();
	}
	fx_store_release(&mem.file[0], (uint32_t)NONE);
	fx_hold_close_end(&mem.word[0]);
	fx_store_release(&mem.file[0], (uint32_t)NEW);
	if (how == FX_CLOSING_HELD && fx_hold_drop(&mem.word[1]))
		fx_store_release(&mem.file[1], (uint32_t)NONE);
	fx_store_release(&mem.over, 1u);
}

/* Nothing private is left behind, and nobody holds anything. */
static void check_dropped(void)
{
	fx_model_assert(!(mem.word[0] & (FX_HOLD_COUNT | FX_HOLD_CLOSING)));
	fx_model_assert(!(mem.word[1] & (FX_HOLD_COUNT | FX_HOLD_PRIVATE)));
	fx_model_assert(mem.file[0] == NEW && mem.file[1] == NONE);
}

static const struct fx_model_scenario scenarios[] = {
	{ { .name = "alone",
	    .setup = setup,
	    .thread = { lone_holder, poster, other_poster },
	    .check = check_each_once },
	  FX_MISTAKE(THIEF) },
	{ { .name = "cancel",
	    .setup = setup,
	    .thread = { caller, queue_holder, deadline },
	    .check = check_over },
	  FX_MISTAKE(NO_NOTICE_WAIT) | FX_MISTAKE(STORED_GIVE_UP) },
	{ { .name = "close",
	    .setup = setup,
	    .thread = { waiting_call, closer },
	    .check = check_dropped },
	  FX_MISTAKE(NO_EPOCH) | FX_MISTAKE(NO_CLOSING) | FX_MISTAKE(NO_HOLD) |
		  FX_MISTAKE(NO_MOVE) },
};

static const char *const mistake_names[] = {
	[THIEF] = "not alone",
	[NO_NOTICE_WAIT] = "woken before the notice",
	[STORED_GIVE_UP] = "given up by a store",
	[NO_EPOCH] = "epoch not compared",
	[NO_CLOSING] = "held while it is closed",
	[NO_HOLD] = "no hold",
	[NO_MOVE] = "closed before it is moved",
};

int main(int argc, char **argv)
{
	return fx_model_main(argc > 1 ? argv[1] : NULL, scenarios,
			     FX_ARRAY_SIZE(scenarios), mistake_names, &mistake);
}
