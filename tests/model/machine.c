/* SPDX-License-Identifier: MIT */
/*
 * The modelled machine: x86-TSO store buffers, blocking, and which steps of a
 * thread need no scheduling decision.  It does not choose schedules
 * (explore.c).
 *
 * A step is local when it commutes with everything the other threads can
 * ever do: a store into the own buffer, a load of a word no other thread
 * writes.  Local steps run at once, which loses no behaviour.  Who shares a
 * word is learned while exploring; a surprise restarts the search.
 */
#include "model/machine.h"

#include <errno.h>
#include <string.h>

struct fx_machine fx_mc = { .self = -1 };

static uint8_t others_of(unsigned int self)
{
	return (uint8_t)~(1u << self);
}

static uint64_t size_mask(unsigned int size)
{
	return size == 8 ? ~0ull : (1ull << (size * 8)) - 1;
}

static unsigned int index_of(const struct fx_thread *t)
{
	return (unsigned int)(t - fx_mc.thread);
}

static struct fx_cell *buffer_at(struct fx_thread *t, unsigned int i)
{
	return &t->buffer[(t->head + i) % FX_MODEL_BUFFER];
}

/* What @t would load: its newest own store, else memory. */
static uint64_t visible(const struct fx_thread *t, const char *p,
			unsigned int size)
{
	for (unsigned int i = t->nr; i-- > 0;) {
		const struct fx_cell *c =
			buffer_at((struct fx_thread *)(uintptr_t)t, i);

		/* A load within a store is served by it, as on the machine. */
		if (c->addr <= p && p + size <= c->addr + c->size)
			return c->value >> 8 * (p - c->addr) & size_mask(size);
		if (c->addr < p + size && p < c->addr + c->size) {
			fx_machine_error("load overlaps a buffered store "
					 "of another size");
			break;
		}
	}
	return fx_mem_read(p, size);
}

/* Of threads that never spin, what they read need not be remembered. */
static void note_read(struct fx_thread *t, uint64_t value)
{
	if (!(fx_mc.relaxing & (1u << index_of(t))))
		return;
	if (t->nr_reads < FX_MODEL_READS)
		t->reads[t->nr_reads] = (struct fx_cell){
			t->op.addr, value, t->op.size
		};
	t->nr_reads++;
}

/*
 * A spinning thread goes round again only if it would read something else;
 * otherwise the round is a copy of the last one.
 */
static bool relax_ready(const struct fx_thread *t)
{
	if (t->nr_reads == 0 || t->nr_reads > FX_MODEL_READS)
		return true;
	for (unsigned int i = 0; i < t->nr_reads; i++) {
		const struct fx_cell *c = &t->reads[i];

		if (visible(t, c->addr, c->size) != c->value)
			return true;
	}
	return false;
}

static bool barrier_ready(const struct fx_thread *t)
{
	for (unsigned int i = 0; i < fx_mc.nr_threads; i++)
		if (t->owed[i])
			return false;
	return true;
}

/* Return: whether what @t waits for, apart from its turn, has come. */
static bool ready(const struct fx_thread *t)
{
	switch (t->op.kind) {
	case FX_OP_LOAD:
	case FX_OP_STORE:
	case FX_OP_YIELD:
	case FX_OP_CHOOSE:
	case FX_OP_WOKEN:
		return true;
	case FX_OP_RELAX:
		return relax_ready(t);
	case FX_OP_BARRIER_END:
		return barrier_ready(t);
	case FX_OP_SEM_WAIT:
		return !t->nr && fx_mem_read(t->op.addr, t->op.size);
	default: /* locked operations and system calls */
		return !t->nr;
	}
}

bool fx_machine_local(const struct fx_thread *t)
{
	const struct fx_op *op = &t->op;
	uint8_t others = others_of(index_of(t));

	if (fx_mc.model->no_reduction)
		return false;
	switch (op->kind) {
	case FX_OP_LOAD:
		return !(fx_region_users(op->addr, op->size, true) & others);
	case FX_OP_CAS:
	case FX_OP_EXCHANGE:
	case FX_OP_FETCH_ADD:
		return ready(t) &&
		       !(fx_region_users(op->addr, op->size, false) & others);
	case FX_OP_STORE:
	case FX_OP_WOKEN:
	case FX_OP_FENCE:
	case FX_OP_RELAX:
	case FX_OP_BARRIER_END:
		return ready(t);
	default:
		return false;
	}
}

static void push(struct fx_thread *t)
{
	if (t->nr == FX_MODEL_BUFFER) {
		fx_machine_error("store buffer full, raise FX_MODEL_BUFFER");
		return;
	}
	*buffer_at(t, t->nr) = (struct fx_cell){
		t->op.addr, t->op.a, t->op.size
	};
	t->nr++;
}

static void flush(struct fx_thread *t)
{
	struct fx_cell *c = buffer_at(t, 0);
	unsigned int self = index_of(t);

	fx_mem_write(c->addr, c->size, c->value);
	if (fx_mc.tracing)
		fx_report_flush(self, c);
	t->head = (t->head + 1) % FX_MODEL_BUFFER;
	t->nr--;
	if (t->nr_issued)
		t->nr_issued--;
	for (unsigned int i = 0; i < fx_mc.nr_threads; i++)
		if (fx_mc.thread[i].owed[self])
			fx_mc.thread[i].owed[self]--;
}

/*
 * Stores after a thread's last shared step may just as well be issued later
 * (local steps run early), so a barrier need not wait for them.
 */
static void barrier_begin(struct fx_thread *t)
{
	for (unsigned int i = 0; i < fx_mc.nr_threads; i++)
		t->owed[i] = fx_mc.thread[i].nr_issued;
	t->op.kind = FX_OP_BARRIER_END;
}

static unsigned int waiters(const char *p, uint32_t *mask)
{
	unsigned int nr = 0;

	*mask = 0;
	for (unsigned int i = 0; i < fx_mc.nr_threads; i++) {
		const struct fx_thread *t = &fx_mc.thread[i];

		if (t->run == FX_RUN_WAITING && t->op.addr == p) {
			*mask |= 1u << i;
			nr++;
		}
	}
	return nr;
}

/* Return: how many sets of @n waiters there are; *@set: number @variant. */
static unsigned int wake_sets(const struct fx_op *op, unsigned int variant,
			      uint32_t *set)
{
	unsigned int found = 0, nr;
	uint32_t all;

	nr = waiters(op->addr, &all);
	if (op->a >= nr) {
		*set = all;
		return 1;
	}
	for (uint32_t m = 0; m <= all; m++) {
		if ((m & all) != m ||
		    (unsigned int)__builtin_popcount(m) != op->a)
			continue;
		if (found++ == variant)
			*set = m;
	}
	return found;
}

static uint64_t wake(const struct fx_op *op, unsigned int variant)
{
	uint32_t set = 0;

	wake_sets(op, variant, &set);
	for (unsigned int i = 0; i < fx_mc.nr_threads; i++) {
		if (!(set & (1u << i)))
			continue;
		fx_mc.thread[i].run = FX_RUN_PENDING;
		fx_mc.thread[i].op.kind = FX_OP_WOKEN;
	}
	return (uint64_t)__builtin_popcount(set);
}

/* The operation on memory.  Return: its result. */
static uint64_t access_memory(struct fx_thread *t)
{
	struct fx_op *op = &t->op;
	uint64_t old = visible(t, op->addr, op->size);
	uint64_t mask = size_mask(op->size);

	switch (op->kind) {
	case FX_OP_CAS:
		if (old == op->a)
			fx_mem_write(op->addr, op->size, op->b);
		break;
	case FX_OP_EXCHANGE:
		fx_mem_write(op->addr, op->size, op->a);
		break;
	case FX_OP_FETCH_ADD:
		fx_mem_write(op->addr, op->size, (old + op->a) & mask);
		break;
	case FX_OP_SEM_POST:
		fx_mem_write(op->addr, op->size, old + 1);
		return 0;
	case FX_OP_SEM_WAIT:
		fx_mem_write(op->addr, op->size, 0);
		return old;
	case FX_OP_WAIT:
		if (old == op->a)
			t->run = FX_RUN_WAITING;
		return old == op->a ? 0 : (uint64_t)-EAGAIN;
	default:
		break;
	}
	note_read(t, old);
	return old;
}

void fx_machine_execute(struct fx_thread *t, unsigned int variant)
{
	struct fx_op op = t->op;

	t->result = 0;
	if (++fx_mc.nr_ops > FX_MODEL_MAX_OPS) {
		fx_machine_error("endless: thread %u ran on (a spin loop "
				 "without fx_cpu_relax?)", index_of(t));
		return;
	}
	switch (op.kind) {
	case FX_OP_STORE:
		push(t);
		break;
	case FX_OP_RELAX:
		t->nr_reads = 0;
		break;
	case FX_OP_CHOOSE:
		t->result = variant;
		break;
	case FX_OP_BARRIER:
		barrier_begin(t);
		break;
	case FX_OP_WAKE:
		t->result = wake(&op, variant);
		break;
	case FX_OP_FENCE:
	case FX_OP_YIELD:
	case FX_OP_BARRIER_END:
	case FX_OP_WOKEN:
		break;
	default:
		t->result = access_memory(t);
		break;
	}
	if (op.kind != FX_OP_STORE)
		t->history = fx_hash_mix(t->history, t->result);
	if (fx_mc.tracing)
		fx_report_op(index_of(t), &op, t->result);
}

static bool enabled(const struct fx_thread *t)
{
	return t->run == FX_RUN_PENDING && ready(t);
}

static bool settle_thread(struct fx_thread *t)
{
	uint8_t others = others_of(index_of(t));
	bool moved = false;

	while (t->nr && !fx_mc.model->no_reduction) {
		const struct fx_cell *c = buffer_at(t, 0);

		if (fx_region_users(c->addr, c->size, false) & others)
			break;
		flush(t);
		moved = true;
	}
	if (t->run == FX_RUN_PENDING && fx_machine_local(t) &&
	    !fx_mc.failed) {
		fx_machine_execute(t, 0);
		if (!fx_mc.failed)
			fx_machine_resume(t);
		moved = true;
	}
	return moved;
}

void fx_machine_settle(void)
{
	bool moved = true;

	while (moved && !fx_mc.failed) {
		moved = false;
		for (unsigned int i = 0; i < fx_mc.nr_threads; i++) {
			if (fx_mc.failed)
				return;
			moved |= settle_thread(&fx_mc.thread[i]);
		}
	}
}

static void step(struct fx_thread *t, unsigned int variant)
{
	bool begins_barrier = t->op.kind == FX_OP_BARRIER;
	int self = (int)index_of(t);

	if (t->op.kind != FX_OP_CHOOSE) {
		if (fx_mc.last >= 0 && fx_mc.last != self &&
		    enabled(&fx_mc.thread[fx_mc.last]))
			fx_mc.nr_preemptions++;
		fx_mc.last = self;
		t->nr_issued = t->nr;
	}
	fx_machine_execute(t, variant);
	if (fx_mc.model->no_reduction)
		t->nr_issued = t->nr;
	if (!fx_mc.failed && t->run == FX_RUN_PENDING &&
	    !begins_barrier)
		fx_machine_resume(t);
}

void fx_machine_apply(struct fx_action a)
{
	struct fx_thread *t = &fx_mc.thread[a.thread];

	if (a.type == FX_ACT_FLUSH ? !t->nr : !enabled(t))
		fx_machine_error("replay differs: threads not deterministic");
	else if (a.type == FX_ACT_FLUSH)
		flush(t);
	else
		step(t, a.variant);
}

static unsigned int variants(const struct fx_op *op)
{
	uint32_t set;

	if (op->kind == FX_OP_CHOOSE)
		return (unsigned int)op->a;
	if (op->kind == FX_OP_WAKE)
		return wake_sets(op, 0, &set);
	return 1;
}

static unsigned int add_steps(struct fx_action *act, unsigned int nr,
			      unsigned int thread)
{
	unsigned int n = variants(&fx_mc.thread[thread].op);

	for (unsigned int v = 0; v < n && nr < FX_MODEL_MAX_ACTIONS; v++)
		act[nr++] = (struct fx_action){ FX_ACT_STEP, (uint8_t)thread,
						(uint8_t)v };
	return nr;
}

unsigned int fx_machine_actions(struct fx_action *act, bool *bounded)
{
	unsigned int max = fx_mc.model->max_preemptions, nr = 0;
	bool only_last = max && fx_mc.nr_preemptions >= max &&
			 fx_mc.last >= 0 &&
			 enabled(&fx_mc.thread[fx_mc.last]);

	/* A choice concerns its thread alone: no need to interleave it. */
	for (unsigned int i = 0; i < fx_mc.nr_threads; i++) {
		const struct fx_thread *t = &fx_mc.thread[i];

		if (t->run == FX_RUN_PENDING && t->op.kind == FX_OP_CHOOSE &&
		    !fx_mc.model->no_reduction)
			return add_steps(act, 0, i);
	}
	for (unsigned int i = 0; i < fx_mc.nr_threads; i++) {
		if (!enabled(&fx_mc.thread[i]))
			continue;
		if (only_last && (int)i != fx_mc.last)
			*bounded = true;
		else
			nr = add_steps(act, nr, i);
	}
	for (unsigned int i = 0; i < fx_mc.nr_threads; i++)
		if (fx_mc.thread[i].nr && nr < FX_MODEL_MAX_ACTIONS)
			act[nr++] = (struct fx_action){ FX_ACT_FLUSH,
							(uint8_t)i, 0 };
	return nr;
}

static void reset_threads(void)
{
	for (unsigned int i = 0; i < fx_mc.nr_threads; i++) {
		struct fx_thread *t = &fx_mc.thread[i];

		t->run = FX_RUN_PENDING;
		t->history = (struct fx_hash){ i, ~(uint64_t)i };
		t->head = t->nr = t->nr_issued = t->nr_reads = 0;
		memset(t->owed, 0, sizeof(t->owed));
	}
	for (unsigned int i = 0; i < fx_mc.nr_threads && !fx_mc.failed; i++)
		fx_machine_start(&fx_mc.thread[i]);
}

void fx_machine_reset(void)
{
	fx_regions_restore();
	fx_mc.nr_ops = 0;
	fx_mc.failed = false;
	fx_mc.last = -1;
	fx_mc.nr_preemptions = 0;
	reset_threads();
}

int fx_machine_init(const struct fx_model *m)
{
	int ret;

	memset(&fx_mc, 0, sizeof(fx_mc));
	fx_mc.self = -1;
	fx_mc.model = m;
	m->setup();
	ret = fx_regions_snapshot();
	while (!ret && fx_mc.nr_threads < FX_MODEL_MAX_THREADS &&
	       m->thread[fx_mc.nr_threads]) {
		ret = fx_fiber_init(&fx_mc.thread[fx_mc.nr_threads].fiber);
		if (!ret)
			fx_mc.nr_threads++;
	}
	return ret;
}

void fx_machine_fini(void)
{
	for (unsigned int i = 0; i < fx_mc.nr_threads; i++)
		fx_fiber_fini(&fx_mc.thread[i].fiber);
	fx_regions_free();
}
