/* SPDX-License-Identifier: MIT */
/*
 * Recording for observers (page/record.h) under every schedule: two threads
 * write into one ring over what an observer reads; and an observer asks again
 * while it is noticed that nobody does. Each with the mistakes that it must not
 * survive. Prints TAP.
 */
#include "model/explore.h"

#include <string.h>

#include "page/record.h"

enum {
	RIGHT,
	NO_LOCK,
	NOT_ANNOUNCED, /* what will be written over */
	ANNOUNCED_LATE, /* when it was written */
	PUBLISHED_EARLY, /* before it was written */
	NO_LOOK_BACK, /* the observer trusts what it copied */
	NO_SECOND_LOOK, /* who clears the word */
	WORD_FIRST, /* the observer writes the time last */
};
static unsigned int mistake;

/* A record is two words, its number and its complement; a ring has two. */
enum {
	RECORD = 16,
	BLOCK = 16,
	RING = 32,
	NR_RECORDS = 2, /* of each thread */
};

static struct {
	struct flexsc_trace_ring ring;
	struct flexsc_trace trace;
	uint64_t data[RING / 8];
	uint32_t wanted;
} mem;

static void setup(void)
{
	memset(&mem, 0, sizeof(mem));
	for (unsigned i = 0; i < RING / RECORD; i++)
		mem.data[2 * i + 1] = ~0ull;
	fx_model_region(&mem, sizeof(mem));
	fx_model_name("reserved", &mem.ring.reserved, 8);
	fx_model_name("end", &mem.ring.end, 8);
	fx_model_name("lock", &mem.ring.lock, 4);
	fx_model_name("data", mem.data, sizeof(mem.data));
	fx_model_name("until", &mem.trace.trace_until_ms, 4);
	fx_model_name("wanted", &mem.wanted, 4);
}

static void fill(uint64_t at, uint64_t number)
{
	uint64_t *to = &mem.data[at % RING / 8];

	fx_store_relaxed(&to[0], number);
	fx_store_relaxed(&to[1], ~number);
}

static void write_one(void)
{
	uint64_t at, skip, number;

	if (mistake != NO_LOCK && !fx_record_claim(&mem.ring))
		return; /* dropped */
	number = fx_load_relaxed(&mem.ring.nr) + 1;
	at = fx_load_relaxed(&mem.ring.end);
	if (mistake == RIGHT || mistake == NO_LOCK ||
	    mistake == PUBLISHED_EARLY || mistake == NO_LOOK_BACK)
		at = fx_record_begin(&mem.ring, RECORD, BLOCK, &skip);
	if (mistake == PUBLISHED_EARLY)
		fx_record_end(&mem.ring, at, RECORD);
	fill(at, number);
	if (mistake == ANNOUNCED_LATE)
		fx_store_relaxed(&mem.ring.reserved, at + RECORD);
	if (mistake != PUBLISHED_EARLY)
		fx_record_end(&mem.ring, at, RECORD);
	if (mistake != NO_LOCK)
		fx_record_release(&mem.ring);
}

static void writes(void)
{
	for (unsigned i = 0; i < NR_RECORDS; i++)
		write_one();
}

/* What it takes for a record must be one, and the one of that number. */
static void observes(void)
{
	uint64_t end = fx_load_acquire(&mem.ring.end), from, oldest;
	uint64_t copy[2][2];

	from = end > RING ? end - RING : 0;
	for (uint64_t at = from; at < end; at += RECORD) {
		uint64_t *data = &mem.data[at % RING / 8];

		copy[at % RING / RECORD][0] = fx_load_relaxed(&data[0]);
		copy[at % RING / RECORD][1] = fx_load_relaxed(&data[1]);
	}
	oldest = flexsc_trace_oldest(fx_load_acquire(&mem.ring.reserved), RING);
	for (uint64_t at = from; at < end; at += RECORD) {
		const uint64_t *one = copy[at % RING / RECORD];

		if (at < oldest && mistake != NO_LOOK_BACK)
			continue;
		fx_model_assert(one[1] == ~one[0]);
		fx_model_assert(one[0] == at / RECORD + 1);
	}
}

/* (b) Time does not pass: it is over before 100, and not after it. */

static void setup_asked(void)
{
	setup();
	mem.trace.trace_until_ms = 99;
	mem.wanted = 1;
}

static void lapses(void)
{
	if (fx_record_until(&mem.trace.trace_until_ms, 100))
		return;
	if (mistake == NO_SECOND_LOOK)
		fx_exchange(&mem.wanted, 0u);
	else
		fx_record_lapse(&mem.wanted, &mem.trace, 100);
}

/* Each is a system call of the observer's: a full fence. */
static void asks(void)
{
	if (mistake == WORD_FIRST) {
		fx_store_release(&mem.wanted, 1u);
		fx_fence();
	}
	fx_store_release(&mem.trace.trace_until_ms, 101u);
	fx_fence();
	if (mistake != WORD_FIRST)
		fx_store_release(&mem.wanted, 1u);
}

static void check_wanted(void)
{
	fx_model_assert(mem.wanted);
}

static const struct fx_model_scenario scenarios[] = {
	{ { .name = "ring",
	    .setup = setup,
	    .thread = { writes, writes, observes } },
	  FX_MISTAKE(NO_LOCK) | FX_MISTAKE(NOT_ANNOUNCED) |
		  FX_MISTAKE(ANNOUNCED_LATE) | FX_MISTAKE(PUBLISHED_EARLY) |
		  FX_MISTAKE(NO_LOOK_BACK) },
	{ { .name = "lapse",
	    .setup = setup_asked,
	    .thread = { lapses, lapses, asks },
	    .check = check_wanted },
	  FX_MISTAKE(NO_SECOND_LOOK) | FX_MISTAKE(WORD_FIRST) },
};

static const char *const mistake_names[] = {
	[NO_LOCK] = "no lock",
	[NOT_ANNOUNCED] = "not announced",
	[ANNOUNCED_LATE] = "announced too late",
	[PUBLISHED_EARLY] = "published too early",
	[NO_LOOK_BACK] = "no look back",
	[NO_SECOND_LOOK] = "no second look",
	[WORD_FIRST] = "the word first",
};

int main(int argc, char **argv)
{
	return fx_model_main(argc > 1 ? argv[1] : NULL, scenarios,
			     FX_ARRAY_SIZE(scenarios), mistake_names, &mistake);
}
