/* SPDX-License-Identifier: MIT */
/*
 * Choosing an engine. The only file that knows them all. Each says itself if
 * it can work here; a constructor that fails for another reason than memory
 * or descriptors counts as "cannot" too.
 */
#include "engine/select.h"

#include "engine/engines.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

const struct fx_engine_ops *const fx_engines[] = {
	&fx_engine_kmod,   &fx_engine_kcore,
	&fx_engine_hybrid, &fx_engine_poll,
	&fx_engine_uring,  &fx_engine_uthread,
	&fx_engine_sync,   NULL,
};

void fx_engine_publish_call(struct fx_engine *engine, unsigned nr)
{
	unsigned nr_args = engine->table[nr].nr_args;

	engine->heads[nr] = (int64_t)fx_head(nr, nr_args, 0).word;
	if (nr_args > 4)
		engine->heads[nr] |= FX_HEAD_LONG;
}

void fx_engine_publish(struct fx_engine *engine, uint32_t attempts)
{
	engine->publishes = true;
	engine->attempts = attempts;
	for (unsigned nr = 0; nr < FX_NR_CALLS; nr++) {
		const struct fx_call_desc *desc = &engine->table[nr];

		if (!(attempts >> desc->call_class & 1) &&
		    !(desc->flags & (FX_CALL_SELF | FX_CALL_CLOSES)))
			fx_engine_publish_call(engine, nr);
	}
}

void fx_engine_unpublish(struct fx_engine *engine)
{
	engine->publishes = false;
	engine->attempts = FX_ATTEMPT_ALL;
	memset(engine->heads, 0, FX_NR_CALLS * sizeof(*engine->heads));
}

const struct fx_engine_ops *fx_engine_find(const char *name)
{
	for (unsigned i = 0; fx_engines[i]; i++)
		if (strcmp(fx_engines[i]->name, name) == 0)
			return fx_engines[i];
	return NULL;
}

/* Usable, and really made. 1: it cannot work here, @reason says why. */
static int try_engine(const struct fx_engine_ops *ops,
		      struct fx_engine **engine,
		      const struct fx_engine_config *config, char *reason,
		      size_t size)
{
	int bad;

	if (!ops->usable(reason, size))
		return 1;
	bad = ops->new (engine, config);
	if (!bad || bad == -ENOMEM || bad == -EMFILE || bad == -ENFILE)
		return bad;
	snprintf(reason, size, "could not be set up (%s)", strerror(-bad));
	return 1;
}

int fx_engine_new(struct fx_engine **engine, const char *wanted,
		  const struct fx_engine_config *config,
		  char reason[FX_REASON_SIZE])
{
	const struct fx_engine_ops *first = NULL;
	char why[FX_REASON_SIZE / 2];
	int bad;

	if (strcmp(wanted, "auto") != 0) {
		first = fx_engine_find(wanted);
		if (!first)
			return -EINVAL;
		bad = try_engine(first, engine, config, why, sizeof(why));
		if (bad <= 0) {
			snprintf(reason, FX_REASON_SIZE, "chosen by hand; %s",
				 why);
			return bad;
		}
		snprintf(reason, FX_REASON_SIZE, "%s %s; ", wanted, why);
	} else {
		snprintf(reason, FX_REASON_SIZE, "chosen automatically: ");
	}
	for (unsigned i = 0; fx_engines[i]; i++) {
		size_t used = strlen(reason);

		if (fx_engines[i] == first)
			continue;
		bad = try_engine(fx_engines[i], engine, config, why,
				 sizeof(why));
		if (bad > 0)
			continue;
		snprintf(reason + used, FX_REASON_SIZE - used, "%s %s",
			 fx_engines[i]->name, why);
		return bad;
	}
	return -ENOSYS;
}
