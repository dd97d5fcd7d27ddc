/* SPDX-License-Identifier: MIT */
/*
 * The search: depth first over all schedules, cut at states seen before, with
 * a checkpoint at each decision and a replay from the start at each ending.
 * A state is known by a 128-bit hash of memory, store buffers and the results
 * every thread has seen, of which its position and local variables are a
 * function (or of its stack: by_stack).  Does not know what operations do.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "model/checkpoint.h"
#include "model/machine.h"

struct frame {
	struct fx_checkpoint checkpoint;
	unsigned int nr, next; /* alternatives, and the one being explored */
	struct fx_action act[FX_MODEL_MAX_ACTIONS];
};

struct search {
	struct fx_hash *table; /* open addressing, a power of two slots */
	uint64_t nr_slots;
	struct frame **path; /* frames are kept for reuse */
	unsigned int depth, nr_frames;
	uint64_t max_states;
	bool bounded; /* something was left out */
	struct fx_model_stats stats;
};

static void *must(void *p)
{
	if (!p) {
		fputs("# model: out of memory\n", stderr);
		abort();
	}
	return p;
}

/* Return: whether @h was not there before. */
static bool table_add(struct fx_hash *table, uint64_t nr_slots,
		      struct fx_hash h)
{
	uint64_t i = h.lo & (nr_slots - 1);

	while (table[i].lo | table[i].hi) {
		if (table[i].lo == h.lo && table[i].hi == h.hi)
			return false;
		i = (i + 1) & (nr_slots - 1);
	}
	table[i] = h;
	return true;
}

static void table_grow(struct search *s)
{
	uint64_t nr = s->nr_slots ? s->nr_slots * 2 : 1u << 12;
	struct fx_hash *table = must(calloc(nr, sizeof(*table)));

	for (uint64_t i = 0; i < s->nr_slots; i++)
		if (s->table[i].lo | s->table[i].hi)
			table_add(table, nr, s->table[i]);
	free(s->table);
	s->table = table;
	s->nr_slots = nr;
}

static bool state_is_new(struct search *s, struct fx_hash h)
{
	if (s->stats.states * 4 >= s->nr_slots * 3)
		table_grow(s);
	if (!table_add(s->table, s->nr_slots, h))
		return false;
	s->stats.states++;
	return true;
}

static void push_frame(struct search *s)
{
	struct frame *f;

	if (s->depth == s->nr_frames) {
		s->nr_frames = s->nr_frames ? s->nr_frames * 2 : 64;
		s->path = must(realloc(s->path, s->nr_frames *
						sizeof(*s->path)));
		memset(s->path + s->depth, 0,
		       (s->nr_frames - s->depth) * sizeof(*s->path));
	}
	if (!s->path[s->depth])
		s->path[s->depth] = must(calloc(1, sizeof(*f)));
	f = s->path[s->depth++];
	f->next = 0;
	f->nr = fx_machine_actions(f->act, &s->bounded);
	if (f->nr > 1)
		fx_checkpoint_save(&f->checkpoint);
	if (s->depth > s->stats.max_depth)
		s->stats.max_depth = s->depth;
}

/* Drop the newest decision that has no alternative left. */
static bool backtrack(struct search *s)
{
	while (s->depth) {
		struct frame *f = s->path[s->depth - 1];

		if (++f->next < f->nr)
			return true;
		s->depth--;
	}
	return false;
}

/* Repeat all decisions on the path, from the start. */
static void replay(struct search *s)
{
	fx_machine_reset();
	for (unsigned int i = 0; i < s->depth && !fx_mc.failed; i++) {
		struct frame *f = s->path[i];

		fx_machine_settle();
		if (!fx_mc.failed)
			fx_machine_apply(f->act[f->next]);
	}
	if (!fx_mc.failed)
		fx_machine_settle();
}

/*
 * Arrive at the ending once more without checkpoints: must be the same state,
 * and results that a thread left in plain variables are right for check().
 */
static void verify(struct search *s)
{
	struct fx_hash h = fx_machine_hash(false), again;

	replay(s);
	if (fx_mc.failed)
		return;
	again = fx_machine_hash(false);
	if (again.lo != h.lo || again.hi != h.hi)
		fx_machine_error("replay differs: threads not deterministic, "
				 "or state outside regions and locals");
}

/* No step is possible: the end, or threads that nothing will ever wake. */
static void finish(struct search *s)
{
	if (fx_mc.sharing_changed)
		return; /* replays run by the new knowledge, this path did not */
	verify(s);
	if (fx_mc.failed)
		return;
	for (unsigned int i = 0; i < fx_mc.nr_threads; i++) {
		if (fx_mc.thread[i].run != FX_RUN_DONE &&
		    !(fx_mc.model->daemons & (1u << i))) {
			fx_machine_error("deadlock: thread %u is never woken",
					 i);
			return;
		}
	}
	s->stats.endings++;
	if (fx_mc.model->check)
		fx_mc.model->check();
}

/* Follow first alternatives down to a known state, an end or a failure. */
static void descend(struct search *s)
{
	s->stats.executions++;
	while (!fx_mc.failed) {
		struct fx_hash h;

		fx_machine_settle();
		if (fx_mc.failed)
			return;
		h = fx_machine_hash(fx_mc.model->by_stack);
		if (!state_is_new(s, h))
			return;
		push_frame(s);
		if (!s->path[s->depth - 1]->nr) {
			s->depth--;
			finish(s);
			return;
		}
		s->stats.transitions += s->path[s->depth - 1]->nr;
		fx_machine_apply(s->path[s->depth - 1]->act[0]);
	}
}

/* A word was not as private as assumed: what was explored does not count. */
static void restart(struct search *s)
{
	fx_mc.sharing_changed = false;
	memset(s->table, 0, s->nr_slots * sizeof(*s->table));
	s->depth = 0;
	s->bounded = false;
	s->stats.states = s->stats.transitions = s->stats.endings = 0;
	s->stats.max_depth = 0;
	s->stats.nr_restarts++;
	fx_machine_reset();
}

static void search_all(struct search *s)
{
	table_grow(s);
	fx_machine_reset();
	for (;;) {
		struct frame *f;

		descend(s);
		if (fx_mc.sharing_changed) {
			restart(s);
			continue;
		}
		if (fx_mc.failed)
			return;
		if (s->stats.states >= s->max_states) {
			s->bounded = true;
			return;
		}
		if (!backtrack(s))
			return;
		f = s->path[s->depth - 1];
		fx_checkpoint_restore(&f->checkpoint);
		fx_machine_apply(f->act[f->next]);
	}
}

static void print_failure(struct search *s)
{
	char failure[sizeof(fx_mc.failure)];

	memcpy(failure, fx_mc.failure, sizeof(failure));
	printf("# %s: failing schedule:\n", fx_mc.model->name);
	fx_mc.tracing = true;
	replay(s);
	fx_mc.tracing = false;
	fx_report_blocked();
	printf("# FAILED: %s\n", failure);
	memcpy(fx_mc.failure, failure, sizeof(failure));
}

static double now_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void search_free(struct search *s)
{
	for (unsigned int i = 0; i < s->nr_frames && s->path[i]; i++) {
		fx_checkpoint_free(&s->path[i]->checkpoint);
		free(s->path[i]);
	}
	free(s->path);
	free(s->table);
}

int fx_model_run(const struct fx_model *m, struct fx_model_stats *out)
{
	struct search s = { 0 };
	double start = now_seconds();
	bool failed;

	s.max_states = m->max_states ? m->max_states : FX_MODEL_MAX_STATES;
	if (fx_machine_init(m))
		must(NULL);
	if (!fx_mc.failed)
		search_all(&s);
	failed = fx_mc.failed;
	if (failed) {
		if (!m->quiet)
			print_failure(&s);
		memcpy(s.stats.failure, fx_mc.failure, sizeof(fx_mc.failure));
	}
	s.stats.exhaustive = !failed && !s.bounded;
	s.stats.seconds = now_seconds() - start;
	if (!failed && s.bounded)
		printf("# %s: NOT exhaustive\n", m->name);
	if (out)
		*out = s.stats;
	fx_machine_fini();
	search_free(&s);
	if (failed)
		return FX_MODEL_FAILED;
	return s.bounded ? FX_MODEL_PARTIAL : FX_MODEL_OK;
}
