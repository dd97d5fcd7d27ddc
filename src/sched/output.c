/* SPDX-License-Identifier: MIT */
/*
 * Answers of several tasks made in a row, at the end of the round: the paper's
 * batches, for the calls that gain by them even where each still crosses into
 * the kernel (flexsc-osdi10.txt, 4.1).
 *
 * An answer wakes a client. If that one sleeps on an idle processor, waking it
 * is the dearest part of the call; of answers made in a row most find it awake.
 * Whether that is so here is measured all the time: some answers are made alone
 * in any case, and some rounds together.
 *
 * The task is parked meanwhile, for OUTPUTS_NS and one slice at most, and
 * listens to nothing: to all others it has not made its call yet. That is why
 * no hold on its descriptor is needed either.
 */
#include "sched/park.h"

#include "base/clock.h"

struct fx_output {
	struct fx_output *next;
	struct fx_task *task;
	struct flexsc_entry *call;
	fx_ticket ticket;
	bool done; /* else it is to be posted */
};

#define OUTPUTS_NS FX_NS_PER_MS

/* What parking costs, and what the task's stack going cold does. */
#define PARKING_NS 400

/* Of the last ones; who lost the processor in between counts little. */
static void average(uint32_t *of, uint64_t ns)
{
	uint64_t most = *of ? *of * 4ull : FX_NS_PER_MS;

	if (ns > most)
		ns = most;
	*of = (uint32_t)(*of ? (*of * 7 + ns) / 8 : ns);
}

static bool slices_are_short(const struct fx_queue *queue)
{
	return queue->slice_ns <= OUTPUTS_NS / FX_OUTPUTS_LEAST;
}

/* A time has changed. */
static void decide(struct fx_queue *queue)
{
	queue->output_pays = queue->alone_ns >
				     queue->together_ns + PARKING_NS &&
			     slices_are_short(queue);
}

void fx_output_round_ends(struct fx_carrier *carrier)
{
	struct fx_queue *queue = carrier->queue;

	if (!queue->began_ns || carrier->round < FX_ROUND_TIMED)
		return;
	average(&queue->slice_ns,
		(fx_now_ns() - queue->began_ns) / carrier->round);
	decide(queue);
}

void fx_output_round_begins(struct fx_carrier *carrier)
{
	struct fx_queue *queue = carrier->queue;

	queue->began_ns = fx_ready_count(&queue->ready) >= FX_ROUND_TIMED ?
				  fx_now_ns() :
				  0;
}

/* One that has ended; fx_owner_begin() was not asked. */
static void count(struct fx_queue *queue, const struct flexsc_entry *call)
{
	fx_call_count(queue, call->nr);
	fx_count(queue->owner.counters, at_once);
	fx_count(queue->owner.counters, completed);
}

void fx_output_all(struct fx_carrier *carrier)
{
	struct fx_queue *queue = carrier->queue;
	struct fx_engine *engine = queue->owner.engine;
	struct fx_output *output = queue->outputs, *next;
	uint64_t begin_ns = fx_now_ns();
	unsigned nr = 0;

	queue->outputs = NULL;
	for (; output; output = next) {
		next = output->next;
		output->done = engine->ops->attempt(engine, output->call);
		if (output->done) {
			engine->ops->answered(engine, output->call,
					      fx_ready_count(&queue->ready));
			count(queue, output->call);
		}
		fx_wake_inside(carrier, output->task, output->ticket,
			       FX_WOKEN_VALUE);
		nr++;
	}
	fx_count_add(&queue->count, calls_together, nr);
	if (nr >= FX_OUTPUTS_LEAST)
		average(&queue->together_ns, (fx_now_ns() - begin_ns) / nr);
	decide(queue);
}

static bool make_alone(struct fx_carrier *carrier, struct flexsc_entry *call)
{
	struct fx_queue *queue = carrier->queue;
	struct fx_engine *engine = queue->owner.engine;
	uint64_t begin_ns = fx_now_ns();
	bool done = engine->ops->attempt(engine, call);

	if (!done)
		return false;
	average(&queue->alone_ns, fx_now_ns() - begin_ns);
	decide(queue);
	count(queue, call);
	fx_leave(carrier);
	return true;
}

static bool make_together(struct fx_carrier **carrier, struct fx_task *me,
			  struct flexsc_entry *call, const char *where)
{
	struct fx_queue *queue = (*carrier)->queue;
	struct fx_output output = { .task = me, .call = call };
	uint32_t slices;

	output.ticket = fx_task_arm(me);
	if (!queue->outputs) {
		queue->last_output = &queue->outputs;
		slices = OUTPUTS_NS / (queue->slice_ns + 1);
		if (slices < FX_ROUND - (*carrier)->round)
			(*carrier)->limit = (*carrier)->round + slices;
	}
	*queue->last_output = &output;
	queue->last_output = &output.next;
	fx_store_relaxed(&queue->waited, 1u);
	fx_park_inside(*carrier, me, where, NULL, 0);
	if (!output.done)
		*carrier = fx_enter(me);
	return output.done;
}

bool fx_output(struct fx_carrier **carrier, struct fx_task *me,
	       struct flexsc_entry *call, const char *where)
{
	struct fx_queue *queue = (*carrier)->queue;

	if (!slices_are_short(queue))
		return false;
	if (queue->output_due) {
		queue->output_due = false;
		return make_alone(*carrier, call);
	}
	return make_together(carrier, me, call, where);
}
