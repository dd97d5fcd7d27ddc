/* SPDX-License-Identifier: MIT */
/*
 * What the checker tells people: names of addresses, the trace of a failing
 * schedule, and TAP lines.
 */
#include "model/machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned int nr_tap, nr_tap_failed;

void fx_model_region_named(const char *name, void *p, size_t size)
{
	if (fx_mc.nr_regions == FX_MODEL_MAX_REGIONS) {
		fx_machine_error("too many regions");
		return;
	}
	fx_mc.region[fx_mc.nr_regions++] =
		(struct fx_region){ .name = name, .p = p, .size = size };
}

void fx_model_name(const char *name, const volatile void *p, size_t size)
{
	if (fx_mc.nr_names < FX_MODEL_MAX_NAMES)
		fx_mc.names[fx_mc.nr_names++] =
			(struct fx_name){ name, (const char *)(uintptr_t)p,
					  size };
}

const char *fx_report_address(const char *p, char *buf, size_t size)
{
	const struct fx_region *r = fx_region_find(p, 1);
	const char *name = r ? r->name : NULL, *base = r ? r->p : NULL;
	size_t best = (size_t)-1;

	for (unsigned int i = 0; i < fx_mc.nr_names; i++) {
		const struct fx_name *n = &fx_mc.names[i];

		if (p < n->p || p >= n->p + n->size || n->size >= best)
			continue;
		best = n->size;
		name = n->name;
		base = n->p;
	}
	if (!name)
		snprintf(buf, size, "%p", (const void *)p);
	else if (p == base)
		snprintf(buf, size, "%s", name);
	else
		snprintf(buf, size, "%s+%zu", name, (size_t)(p - base));
	return buf;
}

static const char *const op_names[] = {
	[FX_OP_LOAD] = "load",
	[FX_OP_STORE] = "store",
	[FX_OP_CAS] = "cas",
	[FX_OP_EXCHANGE] = "exchange",
	[FX_OP_FETCH_ADD] = "fetch_add",
	[FX_OP_FENCE] = "fence",
	[FX_OP_RELAX] = "relax",
	[FX_OP_YIELD] = "yield",
	[FX_OP_CHOOSE] = "choose",
	[FX_OP_BARRIER] = "membarrier",
	[FX_OP_BARRIER_END] = "membarrier returns",
	[FX_OP_WAIT] = "futex wait",
	[FX_OP_WOKEN] = "futex wait returns",
	[FX_OP_WAKE] = "futex wake",
	[FX_OP_SEM_POST] = "sem post",
	[FX_OP_SEM_WAIT] = "sem wait",
};

#define X(v) ((unsigned long long)(v))

void fx_report_op(unsigned int thread, const struct fx_op *op, uint64_t result)
{
	char buf[64] = "";

	if (op->addr)
		fx_report_address(op->addr, buf, sizeof(buf));
	printf("# T%u %-10s %s", thread, op_names[op->kind], buf);
	switch (op->kind) {
	case FX_OP_LOAD:
	case FX_OP_SEM_WAIT:
		printf(" -> 0x%llx", X(result));
		break;
	case FX_OP_STORE:
		printf(" = 0x%llx (buffered)", X(op->a));
		break;
	case FX_OP_CAS:
		printf(" 0x%llx to 0x%llx: ", X(op->a), X(op->b));
		if (result == op->a)
			printf("done");
		else
			printf("found 0x%llx", X(result));
		break;
	case FX_OP_EXCHANGE:
	case FX_OP_FETCH_ADD:
		printf(" 0x%llx -> 0x%llx", X(op->a), X(result));
		break;
	case FX_OP_WAIT:
		printf(" if 0x%llx: %s", X(op->a),
		       result ? "EAGAIN" : "sleeps");
		break;
	case FX_OP_CHOOSE:
	case FX_OP_WAKE:
		printf(" %llu -> %llu", X(op->a), X(result));
		break;
	default:
		break;
	}
	putchar('\n');
}

void fx_report_flush(unsigned int thread, const struct fx_cell *cell)
{
	char buf[64];

	printf("#    T%u's store %s = 0x%llx becomes visible\n", thread,
	       fx_report_address(cell->addr, buf, sizeof(buf)), X(cell->value));
}

void fx_report_blocked(void)
{
	char buf[64];

	for (unsigned int i = 0; i < fx_mc.nr_threads; i++) {
		const struct fx_thread *t = &fx_mc.thread[i];

		buf[0] = 0;
		if (t->run == FX_RUN_DONE)
			continue;
		if (t->op.addr)
			fx_report_address(t->op.addr, buf, sizeof(buf));
		printf("# T%u is at: %s %s%s\n", i, op_names[t->op.kind], buf,
		       t->run == FX_RUN_WAITING ? " (sleeping)" : "");
	}
}

void fx_model_tap(const struct fx_model *m, bool expect_failure)
{
	struct fx_model copy = *m;
	struct fx_model_stats s;
	bool good;
	int ret;

	copy.quiet = expect_failure && !getenv("FX_MODEL_VERBOSE");
	ret = fx_model_run(&copy, &s);
	good = expect_failure ? ret == FX_MODEL_FAILED : ret == FX_MODEL_OK;
	nr_tap++;
	nr_tap_failed += !good;
	printf("# %llu states, %llu transitions, %llu endings, depth %u, "
	       "%.3f s%s%s\n",
	       X(s.states), X(s.transitions), X(s.endings), s.max_depth,
	       s.seconds, s.failure[0] ? ", found: " : "", s.failure);
	printf("%sok %u - %s\n", good ? "" : "not ", nr_tap, m->name);
	fflush(stdout);
}

void fx_model_tap_both(const struct fx_model *m, bool expect_failure)
{
	struct fx_model copy = *m;
	char name[120];

	copy.by_stack = false;
	fx_model_tap(&copy, expect_failure);
	snprintf(name, sizeof(name), "%s (by stack)", m->name);
	copy.name = name;
	copy.by_stack = true;
	fx_model_tap(&copy, expect_failure);
}

int fx_model_tap_done(void)
{
	printf("1..%u\n", nr_tap);
	return nr_tap_failed ? 1 : 0;
}

static void run_with(const struct fx_model *m, const char *mistake)
{
	struct fx_model copy = *m;
	char name[120];

	snprintf(name, sizeof(name), "%s%s%s", m->name, mistake ? ": " : "",
		 mistake ? mistake : "");
	copy.name = name;
	copy.by_stack = true;
	fx_model_tap(&copy, mistake);
}

int fx_model_main(const char *name, const struct fx_model_scenario *scenarios,
		  size_t nr, const char *const *mistakes, unsigned int *mistake)
{
	for (size_t i = 0; i < nr; i++) {
		const struct fx_model_scenario *s = &scenarios[i];

		if (name && strcmp(name, s->model.name))
			continue;
		*mistake = 0;
		run_with(&s->model, NULL);
		for (unsigned int m = 1; m < 32; m++) {
			if (!(s->mistakes & 1u << m))
				continue;
			*mistake = m;
			run_with(&s->model, mistakes[m]);
		}
	}
	return fx_model_tap_done();
}
