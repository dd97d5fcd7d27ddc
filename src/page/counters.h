/* SPDX-License-Identifier: MIT */
/* Making and writing the counters of <flexsc/counters.h>. */
#ifndef FX_PAGE_COUNTERS_H
#define FX_PAGE_COUNTERS_H

#include "base/atomic.h"
#include "base/types.h"

#include <flexsc/counters.h>

/* One writer a field. */
#define fx_count(counters, field) fx_count_add(counters, field, 1)
#define fx_count_add(counters, field, n) fx_add_own(&(counters)->field, n)

/* Return: the mapping, or NULL. Private memory where memfd is refused. */
struct flexsc_counters *fx_counters_new(void);
void fx_counters_name(struct flexsc_counters *counters, const char *engine);
void fx_counters_free(struct flexsc_counters *counters);

#endif /* FX_PAGE_COUNTERS_H */
