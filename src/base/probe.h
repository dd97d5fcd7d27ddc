/* SPDX-License-Identifier: MIT */
/*
 * Static probes for bpftrace(8), perf(1), gdb(1) and their like, of the
 * provider "flexsc": a place to stop at, which costs one instruction that does
 * nothing while nobody looks. flexsc(7) names them for users; what they mean:
 *
 *	post     nr, cookie, first argument: a call is posted
 *	start    entry, nr: a thread of ours begins to carry out a call that took
 *		 an entry (kernels and rings that do it themselves are not seen)
 *	done     cookie, result: the owner has it
 *	cancel   entry: a call is to end
 *	park     task, what for (a string), object: see struct flexsc_thread_layout
 *	wake     task, reason (enum fx_reason)
 *	switch   task that was running, the next one; 0: the scheduler itself
 *	handoff  queue, carrier that lost it, the one that got it (thread ids)
 *
 * A cookie is of one call between its posting and its end; a task is a user
 * thread, by the address of its record.
 */
#ifndef FX_BASE_PROBE_H
#define FX_BASE_PROBE_H

#if defined(FX_HAS_PROBES) && !defined(FX_MODEL)
#include <sys/sdt.h>
#define fx_probe1(name, a) DTRACE_PROBE1(flexsc, name, a)
#define fx_probe2(name, a, b) DTRACE_PROBE2(flexsc, name, a, b)
#define fx_probe3(name, a, b, c) DTRACE_PROBE3(flexsc, name, a, b, c)
#else
/* Used, so that what exists for a probe alone is no warning. */
#define fx_probe1(name, a) ((void)(a))
#define fx_probe2(name, a, b) ((void)(a), (void)(b))
#define fx_probe3(name, a, b, c) ((void)(a), (void)(b), (void)(c))
#endif

#endif /* FX_BASE_PROBE_H */
