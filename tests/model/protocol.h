/* SPDX-License-Identifier: MIT */
/*
 * A page set small enough to explore, for the models of our protocols. The
 * code is the library's: protocol-set.c compiles page/set.c under the checker
 * and replaces only the mapping (page/map.c) by registered regions, and the
 * descriptors by semaphores.
 */
#ifndef FX_MODEL_PROTOCOL_H
#define FX_MODEL_PROTOCOL_H

#include "model/explore.h"
#include "page/set.h"

#include <errno.h>

#define NR_MODEL_ENTRIES 4
#define NR_MODEL_VALUES 8 /* a posting is known by its value, 1 to 7 */
#define NR_MODEL_SLOTS 12 /* registered at the start of each segment */

/* Mistakes planted on purpose: a test that cannot fail is worth nothing. */
enum {
	RIGHT,
	NO_BARRIER, /* the sleeper looks without fx_barrier_heavy() */
	EARLY_LOOK, /* the flag is looked at before the publication */
	EARLY_SLOT, /* submission slot stored before the entry */
	EARLY_WORD, /* completion slot stored before the result */
	LATE_LINK, /* a chain's LINK flag stored after its slots */
	DONE_RECYCLES, /* a DONE seen in the status permits recycling */
	NOTICE_FORGOTTEN, /* recycled at the completion, notice outstanding */
	SHORT_SEGMENT, /* next segment after one record an entry, not two */
};
extern unsigned int mistake;

struct model_memory {
	struct flexsc_set shared;
	struct flexsc_entry entries[NR_MODEL_ENTRIES];
	uint32_t sq[FLEXSC_RING_MIN + NR_MODEL_SLOTS];
	uint64_t cq[FLEXSC_RING_MIN + NR_MODEL_SLOTS];
	struct fx_beside beside[NR_MODEL_ENTRIES + FLEXSC_PAGE_ENTRIES];
	uint64_t cookies[NR_MODEL_ENTRIES + FLEXSC_PAGE_ENTRIES];
	struct fx_slot slots[NR_MODEL_ENTRIES + FLEXSC_PAGE_ENTRIES];
	uint32_t free[NR_MODEL_ENTRIES + FLEXSC_PAGE_ENTRIES];
	struct fx_set set;
	uint8_t runs[FX_MODEL_MAX_THREADS][NR_MODEL_VALUES];
	uint8_t completions[NR_MODEL_VALUES]; /* owner's */
	uint32_t stop;
	uint32_t chain; /* I: values 1 to this come as one chain */
};
extern struct model_memory mem;
extern struct fx_model_sem owner_sem, core_sem;

/* In setup(): the first @nr_entries are free, more come by growth. */
void model_set_init(uint32_t nr_entries);

/* Owner: claim, fill and publish one. */
uint32_t model_post(uint64_t value);
/* Owner: the chain @first, @first + 1, ... */
void model_post_chain(uint64_t first, unsigned nr);
/* Owner: reap without waiting; how many completed. Checks what it sees. */
unsigned model_reap(void);
/* Owner: reap until @nr have completed, spinning. */
void model_await(unsigned nr);
/* Owner: reap until every entry is free again, spinning. */
void model_await_all(void);
/* Owner: nothing is left, every value up to @last completed exactly once. */
void model_check(unsigned last);

/* A consumer that spins for ever: a daemon of the model. */
void model_consumer(void);
/* One look at the ring; false if there was nothing. */
bool model_consume(struct fx_worker_view *view);

/* page/set.c, with the barrier that a mistake can leave out. */
void model_barrier_heavy(void);

#endif /* FX_MODEL_PROTOCOL_H */
