/* SPDX-License-Identifier: MIT */
/*
 * Inside of the checker: the state of the modelled machine, shared by the
 * operations threads call (ops.c), their semantics (machine.c), the search
 * (explore.c) and the trace (report.c).
 */
#ifndef FX_MODEL_MACHINE_H
#define FX_MODEL_MACHINE_H

#include "model/explore.h"
#include "model/fiber.h"

#define FX_MODEL_BUFFER 32	 /* stores one thread can have outstanding */
#define FX_MODEL_READS 32	 /* reads remembered between two relaxes */
#define FX_MODEL_MAX_REGIONS 32
#define FX_MODEL_MAX_NAMES 512
#define FX_MODEL_MAX_ACTIONS 96
#define FX_MODEL_MAX_OPS 20000u /* of one execution: more is endless */

enum fx_op_kind {
	FX_OP_LOAD,
	FX_OP_STORE,
	FX_OP_CAS,
	FX_OP_EXCHANGE,
	FX_OP_FETCH_ADD,
	FX_OP_FENCE,
	FX_OP_RELAX,
	FX_OP_YIELD,
	FX_OP_CHOOSE,
	FX_OP_BARRIER,	   /* membarrier: note what must be visible */
	FX_OP_BARRIER_END, /* ... return once it is */
	FX_OP_WAIT,
	FX_OP_WOKEN, /* a wait that a wake has ended */
	FX_OP_WAKE,
	FX_OP_SEM_POST,
	FX_OP_SEM_WAIT,
};

struct fx_op {
	uint8_t kind;
	uint8_t size;
	char *addr;
	uint64_t a; /* value, compared value or count */
	uint64_t b; /* new value of a compare-and-swap */
};

struct fx_cell {
	char *addr;
	uint64_t value;
	uint32_t size;
};

struct fx_hash {
	uint64_t lo, hi;
};

enum fx_run {
	FX_RUN_PENDING, /* has announced op */
	FX_RUN_WAITING, /* in a futex wait */
	FX_RUN_DONE,
};

struct fx_thread {
	struct fx_fiber fiber;
	enum fx_run run;
	struct fx_op op;
	uint64_t result;
	struct fx_hash history; /* of all results so far */
	unsigned int head, nr;	/* store buffer */
	unsigned int nr_issued; /* of nr: certainly before its next step */
	unsigned int nr_reads;	/* since the last relax; may exceed the array */
	unsigned int owed[FX_MODEL_MAX_THREADS]; /* stores a barrier awaits */
	/* Checkpoints copy these two as far as they are in use. */
	struct fx_cell buffer[FX_MODEL_BUFFER];
	struct fx_cell reads[FX_MODEL_READS];
};

struct fx_region {
	const char *name;
	char *p;
	size_t size;
	char *initial;
	uint8_t *readers; /* per 8-byte word: threads that ever read it */
	uint8_t *writers;
};

struct fx_name {
	const char *name;
	const char *p;
	size_t size;
};

enum fx_action_type { FX_ACT_STEP, FX_ACT_FLUSH };

struct fx_action {
	uint8_t type;
	uint8_t thread;
	uint8_t variant; /* result of a choice, waiters a wake picks */
};

struct fx_machine {
	const struct fx_model *model;
	unsigned int nr_threads;
	struct fx_thread thread[FX_MODEL_MAX_THREADS];
	int self;	/* running fiber, -1: the search */
	void *search_sp;
	unsigned int nr_ops; /* executed since reset */
	bool failed;
	bool sharing_changed; /* a word turned out to be shared, or ... */
	unsigned int relaxing; /* ... a thread to spin: mask of those */
	bool tracing;
	int last; /* thread that stepped last, for the preemption bound */
	unsigned int nr_preemptions;
	unsigned int nr_regions;
	struct fx_region region[FX_MODEL_MAX_REGIONS];
	unsigned int nr_names;
	struct fx_name names[FX_MODEL_MAX_NAMES];
	char failure[200];
};

extern struct fx_machine fx_mc;

/* memory.c */
uint64_t fx_mem_read(const char *p, unsigned int size);
void fx_mem_write(char *p, unsigned int size, uint64_t value);
struct fx_hash fx_hash_mix(struct fx_hash h, uint64_t v);
struct fx_region *fx_region_find(const char *p, size_t size);
int fx_regions_snapshot(void);
void fx_regions_restore(void);
void fx_regions_free(void);
/* Note that thread @self uses the word, before any step relies on who does. */
void fx_machine_touch(const struct fx_op *op, unsigned int self);
/* Return: mask of the threads that ever wrote (or also read) the word. */
uint8_t fx_region_users(const char *p, unsigned int size, bool writers_only);
struct fx_hash fx_machine_hash(bool by_stack);

/* machine.c */
int fx_machine_init(const struct fx_model *m);
void fx_machine_fini(void);
void fx_machine_reset(void);
/* Run every operation that commutes with all of the other threads'. */
void fx_machine_settle(void);
void fx_machine_apply(struct fx_action a);
/* Return: number of alternatives, written to @act. */
unsigned int fx_machine_actions(struct fx_action *act, bool *bounded);
/* Return: whether thread @t may do its announced op unobserved, now. */
bool fx_machine_local(const struct fx_thread *t);
void fx_machine_execute(struct fx_thread *t, unsigned int variant);

/* ops.c */
void fx_machine_resume(struct fx_thread *t);
void fx_machine_start(struct fx_thread *t);
void fx_machine_error(const char *fmt, ...)
	__attribute__((format(printf, 1, 2)));

/* report.c */
void fx_report_op(unsigned int thread, const struct fx_op *op,
		  uint64_t result);
void fx_report_flush(unsigned int thread, const struct fx_cell *cell);
void fx_report_blocked(void);
const char *fx_report_address(const char *p, char *buf, size_t size);

#endif /* FX_MODEL_MACHINE_H */
