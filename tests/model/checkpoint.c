/* SPDX-License-Identifier: MIT */
/*
 * Checkpoints: registered memory, thread states and the live part of the
 * fibers' stacks, one after the other in one buffer.  Nothing else is copied,
 * which is why threads must not keep state anywhere else.
 */
#include "model/checkpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/machine.h"

static void put(struct fx_checkpoint *c, const void *p, size_t size)
{
	if (c->used + size > c->size) {
		c->size = (c->used + size) * 2;
		c->data = realloc(c->data, c->size);
		if (!c->data) {
			fputs("# model: out of memory\n", stderr);
			abort();
		}
	}
	memcpy(c->data + c->used, p, size);
	c->used += size;
}

static const char *get(const char *from, void *p, size_t size)
{
	memcpy(p, from, size);
	return from + size;
}

static size_t nr_reads_kept(const struct fx_thread *t)
{
	return t->nr_reads < FX_MODEL_READS ? t->nr_reads : FX_MODEL_READS;
}

static size_t stack_live(const struct fx_thread *t)
{
	return (size_t)(t->fiber.stack + FX_FIBER_STACK_BYTES -
			(char *)t->fiber.sp);
}

void fx_checkpoint_save(struct fx_checkpoint *c)
{
	c->used = 0;
	put(c, &fx_mc.nr_ops, sizeof(fx_mc.nr_ops));
	put(c, &fx_mc.last, sizeof(fx_mc.last));
	put(c, &fx_mc.nr_preemptions, sizeof(fx_mc.nr_preemptions));
	for (unsigned int i = 0; i < fx_mc.nr_regions; i++)
		put(c, fx_mc.region[i].p, fx_mc.region[i].size);
	for (unsigned int i = 0; i < fx_mc.nr_threads; i++) {
		const struct fx_thread *t = &fx_mc.thread[i];

		put(c, t, offsetof(struct fx_thread, buffer));
		if (t->nr)
			put(c, t->buffer, sizeof(t->buffer));
		put(c, t->reads, nr_reads_kept(t) * sizeof(t->reads[0]));
		put(c, t->fiber.sp, stack_live(t));
	}
}

void fx_checkpoint_restore(const struct fx_checkpoint *c)
{
	const char *p = c->data;

	p = get(p, &fx_mc.nr_ops, sizeof(fx_mc.nr_ops));
	p = get(p, &fx_mc.last, sizeof(fx_mc.last));
	p = get(p, &fx_mc.nr_preemptions, sizeof(fx_mc.nr_preemptions));
	for (unsigned int i = 0; i < fx_mc.nr_regions; i++)
		p = get(p, fx_mc.region[i].p, fx_mc.region[i].size);
	for (unsigned int i = 0; i < fx_mc.nr_threads; i++) {
		struct fx_thread *t = &fx_mc.thread[i];

		p = get(p, t, offsetof(struct fx_thread, buffer));
		if (t->nr)
			p = get(p, t->buffer, sizeof(t->buffer));
		p = get(p, t->reads, nr_reads_kept(t) * sizeof(t->reads[0]));
		p = get(p, t->fiber.sp, stack_live(t));
	}
}

void fx_checkpoint_free(struct fx_checkpoint *c)
{
	free(c->data);
	c->data = NULL;
	c->size = c->used = 0;
}
