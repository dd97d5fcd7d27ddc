/* SPDX-License-Identifier: MIT */
/*
 * Test of the checker against itself: random small programs must have the
 * same set of final states with and without the reductions, and with states
 * told apart by history or by stack.  Prints TAP; argument: how many programs.
 */
#include "model/explore.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NR_THREADS 3
#define MAX_LENGTH 5
#define NR_VARS 3
#define MAX_OUTCOMES 20000

enum kind {
	LOAD, STORE, CAS, EXCHANGE, ADD, FENCE, BARRIER, WAIT, WAKE, POST,
	SEM_WAIT, SPIN, CHOOSE, NR_KINDS
};

static struct {
	uint8_t kind[NR_THREADS][MAX_LENGTH];
	uint8_t var[NR_THREADS][MAX_LENGTH];
	uint8_t value[NR_THREADS][MAX_LENGTH];
	unsigned int length;
} program;

static struct {
	uint32_t var[NR_VARS * 2]; /* two variables may share a word */
	uint32_t seen[NR_THREADS][MAX_LENGTH];
} s;
static struct fx_model_sem sem;

struct outcomes {
	uint64_t hash[MAX_OUTCOMES];
	size_t nr;
};
static struct outcomes set[3], *current;

static uint64_t random_next(void)
{
	static uint64_t x = 88172645463325252ull;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return x >> 20;
}

static void generate(void)
{
	bool heavy = random_next() % 2;

	program.length = 2 + (unsigned int)(random_next() % 4);
	for (int t = 0; t < NR_THREADS; t++) {
		for (unsigned int i = 0; i < program.length; i++) {
			program.kind[t][i] = (uint8_t)(random_next() %
				(heavy ? NR_KINDS : STORE + 1));
			if (random_next() % 10 == 0)
				program.kind[t][i] = BARRIER;
			program.var[t][i] = (uint8_t)(random_next() % NR_VARS);
			program.value[t][i] = (uint8_t)(random_next() % 3);
		}
	}
}

static void setup(void)
{
	memset(&s, 0, sizeof(s));
	fx_model_region(&s, sizeof(s));
	fx_model_sem_init(&sem);
}

static uint32_t run_special(uint8_t kind, uint32_t *p, uint32_t value)
{
	switch (kind) {
	case FENCE:
		fx_fence();
		return 0;
	case BARRIER:
		fx_model_membarrier();
		return 0;
	case WAIT:
		return (uint32_t)fx_model_wait(p, value, sizeof(*p));
	case WAKE:
		return (uint32_t)fx_model_wake(p, 1 + value);
	case POST:
		fx_model_sem_post(&sem);
		return 0;
	case SEM_WAIT:
		return (uint32_t)fx_model_sem_wait(&sem);
	case SPIN:
		while (fx_load_acquire(p) == value)
			fx_cpu_relax();
		return 0;
	default:
		return fx_model_choose(2);
	}
}

static uint32_t run_op(uint8_t kind, uint32_t *p, uint32_t value)
{
	uint32_t expected = value;

	switch (kind) {
	case LOAD:
		return fx_load_acquire(p);
	case STORE:
		fx_store_release(p, value);
		return 0;
	case CAS:
		fx_cas(p, &expected, value + 1);
		return expected;
	case EXCHANGE:
		return fx_exchange(p, value);
	case ADD:
		return fx_fetch_add(p, value);
	default:
		return run_special(kind, p, value);
	}
}

static void body(void)
{
	int t = fx_model_self();

	for (unsigned int i = 0; i < program.length; i++)
		s.seen[t][i] = 1 + run_op(program.kind[t][i],
					  &s.var[program.var[t][i]],
					  program.value[t][i]);
}

static void collect(void)
{
	const uint32_t *w = (const uint32_t *)(const void *)&s;
	uint64_t h = 1 + sem.count;

	for (size_t i = 0; i < sizeof(s) / sizeof(*w); i++)
		h = (h ^ w[i]) * 0x9e3779b97f4a7c15ull,
		h ^= h >> 29;
	for (size_t i = 0; i < current->nr; i++)
		if (current->hash[i] == h)
			return;
	if (current->nr < MAX_OUTCOMES)
		current->hash[current->nr++] = h;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void print_program(void)
{
	for (int t = 0; t < NR_THREADS; t++) {
		printf("# T%d:", t);
		for (unsigned int i = 0; i < program.length; i++)
			printf(" %u(%u,%u)", program.kind[t][i],
			       program.var[t][i], program.value[t][i]);
		printf("\n");
	}
}

/* Return: 1 the same outcomes, 0 different, -1 too many states to say. */
static int run_one(size_t *outcomes)
{
	struct fx_model m = { .name = "random", .setup = setup,
			      .thread = { body, body, body },
			      .check = collect, .daemons = 7,
			      .max_states = 1u << 20 };

	for (int mode = 0; mode < 3; mode++) {
		int ret;

		current = &set[mode];
		current->nr = 0;
		m.no_reduction = mode == 0;
		m.by_stack = mode == 2;
		ret = fx_model_run(&m, NULL);
		if (ret != FX_MODEL_OK)
			return ret == FX_MODEL_PARTIAL ? -1 : 0;
		qsort(current->hash, current->nr, 8, compare);
		if (current->nr == MAX_OUTCOMES)
			return -1;
		if (current->nr != set[0].nr ||
		    memcmp(current->hash, set[0].hash, 8 * current->nr))
			return 0;
	}
	*outcomes += set[0].nr;
	return 1;
}

int main(int argc, char **argv)
{
	int nr = argc > 1 ? atoi(argv[1]) : 300, failed = 0, skipped = 0;
	size_t outcomes = 0;

	for (int i = 0; i < nr; i++) {
		int same;

		generate();
		same = run_one(&outcomes);
		skipped += same < 0;
		if (same)
			continue;
		failed++;
		printf("# outcomes: all %zu, reduced %zu, by stack %zu\n",
		       set[0].nr, set[1].nr, set[2].nr);
		print_program();
	}
	printf("# %d programs, %d too large, %zu outcomes\n", nr, skipped,
	       outcomes);
	printf("%sok 1 - reductions keep every outcome\n1..1\n",
	       failed || skipped * 2 > nr ? "not " : "");
	return failed != 0;
}
