/* SPDX-License-Identifier: MIT */
/*
 * Recording what happens, for observers: memory, time limits, and one record.
 * What is in it, call/seen.h knows. (<flexsc/trace.h>)
 */
#ifndef FX_PAGE_TRACE_H
#define FX_PAGE_TRACE_H

#include "base/atomic.h"
#include "base/types.h"

#include <flexsc/trace.h>

/* Observers write the first. */
extern struct fx_trace_wanted {
	uint32_t wanted, zero;
} fx_trace_wanted __attribute__((visibility("hidden"), aligned(8)));

/* Does anybody want to know? All that is paid if not. */
static inline __attribute__((always_inline)) bool fx_watched(void)
{
#if defined(__x86_64__) && !defined(FX_MODEL)
	/* Two instructions, and no register for an address. */
	__asm__ goto("cmpl $0, fx_trace_wanted(%%rip)\n\tjne %l[yes]"
		     :
		     :
		     : "cc", "memory"
		     : yes);
	return false;
yes:
	__attribute__((cold));
	return true;
#else
	return fx_unlikely(fx_load_relaxed(&fx_trace_wanted.wanted));
#endif
}

/* @facts, or something else than 0: for who asks for many at once. */
static inline __attribute__((always_inline)) uint64_t
fx_or_watched(uint64_t facts)
{
#if defined(__x86_64__) && !defined(FX_MODEL)
	__asm__ volatile("orq fx_trace_wanted(%%rip), %0"
			 : "+r"(facts)
			 :
			 : "cc", "memory");
	return facts;
#else
	return facts | fx_load_relaxed(&fx_trace_wanted.wanted);
#endif
}

/* In place of a call's number, where there is no call. */
#define FX_NO_CALL FLEXSC_TRACE_CALLS

/* What of it, of calls of a number. */
enum fx_want {
	FX_WANT_RECORDS = 1,
	FX_WANT_LATENCY = 2
};

/*
 * Once a process, again after fork: with FLEXSC_TRACE in the environment it
 * records from now on. Return: what observers look at.
 */
struct flexsc_trace *fx_trace_start(void);
/* In the child. */
void fx_trace_after_fork(void);

/*
 * What is wanted at @now_ns, the present; enum fx_want. Context: any thread, signal handlers.
 * errno is left alone here and below.
 */
unsigned fx_trace_wants(unsigned nr, uint64_t now_ns);
uint32_t fx_trace_bytes(void);
/* How often what was wanted had ended: what is from before is of no use. */
uint32_t fx_trace_lapses(void);

/* A filter of system calls is about to be put on the process. */
void fx_trace_filtered(void);

void fx_trace_latency(unsigned nr, uint64_t ns, bool failed);
/* Has anybody asked for latencies yet? */
bool fx_trace_times(void);

/* A record that is being written; its parts are at most what fits. */
struct fx_record {
	struct flexsc_trace_record *head;
	struct flexsc_trace_ring *ring;
	uint64_t at;
	uint32_t size;
	uint64_t signals; /* what was blocked before */
};

/**
 * fx_record_new - begin a record; fx_record_close() is to follow
 * @head is filled by the caller, but for size and number.
 *
 * Context: any thread. No signal is handled until then.
 * Return: false if it was dropped: nothing is to follow.
 */
bool fx_record_new(struct fx_record *record);
void fx_record_close(struct fx_record *record);

/**
 * fx_record_part - add what is at an address, as far as it can be read
 * Return: it, or NULL: nothing could be. *size: how many bytes.
 */
const void *fx_record_part(struct fx_record *record, unsigned argument,
			   uint64_t address, size_t *size);
/* Only so much of the part that was added last. */
void fx_record_trim(struct fx_record *record, const void *part, size_t size);

#endif /* FX_PAGE_TRACE_H */
