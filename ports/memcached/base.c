/* SPDX-License-Identifier: MIT */
/* Making a base: all that memcached's configure script links with. */
#include "ports/memcached/io.h"

#include <stdlib.h>

const char *event_get_version(void)
{
	return "2.1.12-flexsc";
}

struct event_base *event_init(void)
{
	struct event_base *base = calloc(1, sizeof(*base));

	if (base)
		base->last = &base->first;
	return base;
}

/* No option of a base concerns us. */
struct event_config *event_config_new(void)
{
	return NULL;
}

int event_config_set_flag(struct event_config *config, int flag)
{
	(void)config;
	(void)flag;
	return 0;
}

void event_config_free(struct event_config *config)
{
	(void)config;
}

struct event_base *event_base_new_with_config(const struct event_config *config)
{
	(void)config;
	return event_init();
}
