/* SPDX-License-Identifier: MIT */
/* Memory that observers of the process find by name. */
#ifndef FX_PAGE_SHOWN_H
#define FX_PAGE_SHOWN_H

#include "base/types.h"

/* Counters that are listed once: of a struct its fields, or their names. */
#define FX_COUNTER_FIELD(name) uint64_t name;
#define FX_COUNTER_NAME(name) #name " "

/**
 * fx_shown_new - zeroed memory that is "/memfd:NAME" in /proc/PID/maps
 *
 * Private memory, which nobody finds, where memfd is refused. A child of
 * fork() shares it. errno is left alone.
 *
 * Return: NULL without memory.
 */
void *fx_shown_new(const char *name, size_t size);

/* Context: signal handlers, too. */
void fx_shown_free(void *shown, size_t size);

#endif /* FX_PAGE_SHOWN_H */
