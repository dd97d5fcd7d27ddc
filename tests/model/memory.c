/* SPDX-License-Identifier: MIT */
/*
 * Memory of the modelled machine: the registered regions, their initial
 * content, which thread ever used which word, and the hash of it all.
 */
#include "model/machine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

uint64_t fx_mem_read(const char *p, unsigned int size)
{
	uint64_t v = 0;

	memcpy(&v, p, size);
	return v;
}

void fx_mem_write(char *p, unsigned int size, uint64_t value)
{
	memcpy(p, &value, size);
}

struct fx_hash fx_hash_mix(struct fx_hash h, uint64_t v)
{
	unsigned __int128 a, b;

	a = (unsigned __int128)(h.lo ^ v ^ 0x9e3779b97f4a7c15ull) *
	    0xd6e8feb86659fd93ull;
	b = (unsigned __int128)(h.hi + v + 0xa0761d6478bd642full) *
	    0xe7037ed1a0b428dbull;
	h.lo = (uint64_t)a ^ (uint64_t)(a >> 64) ^ (h.hi << 1);
	h.hi = (uint64_t)b ^ (uint64_t)(b >> 64) ^ (h.lo >> 3);
	return h;
}

struct fx_region *fx_region_find(const char *p, size_t size)
{
	for (unsigned int i = 0; i < fx_mc.nr_regions; i++) {
		struct fx_region *r = &fx_mc.region[i];
		size_t off = (uintptr_t)p - (uintptr_t)r->p;

		if (off < r->size && size <= r->size - off)
			return r;
	}
	return NULL;
}

static size_t word_of(const struct fx_region *r, const char *p)
{
	return ((uintptr_t)p >> 3) - ((uintptr_t)r->p >> 3);
}

/* Note that @self uses the word, before any step relies on who does. */
void fx_machine_touch(const struct fx_op *op, unsigned int self)
{
	struct fx_region *r = fx_region_find(op->addr, op->size);
	uint8_t bit = (uint8_t)(1u << self), others = (uint8_t)~bit;
	bool reads = op->kind != FX_OP_STORE;
	bool writes = op->kind != FX_OP_LOAD && op->kind != FX_OP_WAIT;
	char buf[64];
	size_t w;

	if (!r || (uintptr_t)op->addr % op->size) {
		fx_machine_error("access of %u bytes at %s: %s", op->size,
				 fx_report_address(op->addr, buf, sizeof(buf)),
				 r ? "not aligned" : "outside the regions");
		return;
	}
	w = word_of(r, op->addr);
	if (writes && !(r->writers[w] & bit)) {
		if ((r->readers[w] | r->writers[w]) & others)
			fx_mc.sharing_changed = true;
		r->writers[w] |= bit;
	}
	if (reads && !(r->readers[w] & bit)) {
		if (r->writers[w] & others)
			fx_mc.sharing_changed = true;
		r->readers[w] |= bit;
	}
}

uint8_t fx_region_users(const char *p, unsigned int size,
			bool writers_only)
{
	const struct fx_region *r = fx_region_find(p, size);
	size_t w;

	if (!r)
		return 0xff;
	w = word_of(r, p);
	return writers_only ? r->writers[w] : r->writers[w] | r->readers[w];
}

static int snapshot_region(struct fx_region *r)
{
	size_t words = r->size / 8 + 2;

	r->initial = malloc(r->size);
	r->readers = calloc(words, 1);
	r->writers = calloc(words, 1);
	if (!r->initial || !r->readers || !r->writers)
		return -ENOMEM;
	memcpy(r->initial, r->p, r->size);
	return 0;
}

int fx_regions_snapshot(void)
{
	int ret = 0;

	for (unsigned int i = 0; i < fx_mc.nr_regions && !ret; i++)
		ret = snapshot_region(&fx_mc.region[i]);
	return ret;
}

void fx_regions_restore(void)
{
	for (unsigned int i = 0; i < fx_mc.nr_regions; i++)
		memcpy(fx_mc.region[i].p, fx_mc.region[i].initial,
		       fx_mc.region[i].size);
}

void fx_regions_free(void)
{
	for (unsigned int i = 0; i < fx_mc.nr_regions; i++) {
		free(fx_mc.region[i].initial);
		free(fx_mc.region[i].readers);
		free(fx_mc.region[i].writers);
	}
}

/* Only what differs from the start counts: large regions stay cheap. */
static struct fx_hash hash_region(const struct fx_region *r, struct fx_hash h)
{
	size_t i = 0;
	uint64_t v, w;

	for (; i + 8 <= r->size; i += 8) {
		memcpy(&v, r->p + i, 8);
		memcpy(&w, r->initial + i, 8);
		if (v == w)
			continue;
		h = fx_hash_mix(h, i);
		h = fx_hash_mix(h, v);
	}
	for (; i < r->size; i++)
		if (r->p[i] != r->initial[i])
			h = fx_hash_mix(h, i << 8 | (uint8_t)r->p[i]);
	return fx_hash_mix(h, r->size);
}

/* The live stack, the saved registers on it, and the announced operation. */
static struct fx_hash hash_stack(const struct fx_thread *t, struct fx_hash h)
{
	const char *end = t->fiber.stack + FX_FIBER_STACK_BYTES;
	unsigned int nr = t->nr_reads;

	h = fx_hash_mix(h, t->op.kind);
	if (t->run == FX_RUN_DONE)
		return h;
	h = fx_hash_mix(h, (uintptr_t)t->op.addr);
	h = fx_hash_mix(h, t->op.a);
	h = fx_hash_mix(h, t->op.b);
	for (const char *p = t->fiber.sp; p < end; p += 8)
		h = fx_hash_mix(h, fx_mem_read(p, 8));
	h = fx_hash_mix(h, nr);
	if (nr > FX_MODEL_READS)
		return h;
	for (unsigned int i = 0; i < nr; i++) {
		h = fx_hash_mix(h, (uintptr_t)t->reads[i].addr);
		h = fx_hash_mix(h, t->reads[i].value);
	}
	return h;
}

static struct fx_hash hash_thread(const struct fx_thread *t, bool by_stack,
				  struct fx_hash h)
{
	if (by_stack) {
		h = hash_stack(t, h);
	} else {
		h = fx_hash_mix(h, t->history.lo);
		h = fx_hash_mix(h, t->history.hi);
	}
	h = fx_hash_mix(h, (uint64_t)t->run << 32 | t->nr_issued << 16 | t->nr);
	for (unsigned int i = 0; i < t->nr; i++) {
		const struct fx_cell *c =
			&t->buffer[(t->head + i) % FX_MODEL_BUFFER];

		h = fx_hash_mix(h, (uintptr_t)c->addr);
		h = fx_hash_mix(h, c->value ^ (uint64_t)c->size << 56);
	}
	if (t->run == FX_RUN_PENDING && t->op.kind == FX_OP_BARRIER_END)
		for (unsigned int i = 0; i < fx_mc.nr_threads; i++)
			h = fx_hash_mix(h, t->owed[i]);
	return h;
}

struct fx_hash fx_machine_hash(bool by_stack)
{
	struct fx_hash h = { 1, 2 };

	for (unsigned int i = 0; i < fx_mc.nr_regions; i++)
		h = hash_region(&fx_mc.region[i], h);
	for (unsigned int i = 0; i < fx_mc.nr_threads; i++)
		h = hash_thread(&fx_mc.thread[i], by_stack, h);
	if (fx_mc.model->max_preemptions)
		h = fx_hash_mix(h, (uint64_t)fx_mc.last << 32 |
					   fx_mc.nr_preemptions);
	if (!(h.lo | h.hi))
		h.lo = 1; /* zero marks a free slot of the state table */
	return h;
}
