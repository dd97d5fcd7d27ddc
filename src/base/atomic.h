/* SPDX-License-Identifier: MIT */
/*
 * Atomic operations of the shared protocols.
 *
 * Every access to memory that another thread may touch at the same time goes
 * through these names, so that the same protocol code can be compiled for the
 * machine and for the exhaustive interleaving checker (FX_MODEL), which
 * replaces each of them by a scheduling point with x86-TSO store buffers.
 */
#ifndef FX_BASE_ATOMIC_H
#define FX_BASE_ATOMIC_H

#include <stdbool.h>
#include <stdint.h>

#ifdef FX_MODEL
#include "model/atomic.h"
#else

#define fx_load_relaxed(p) __atomic_load_n((p), __ATOMIC_RELAXED)
#define fx_load_acquire(p) __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define fx_store_relaxed(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)
#define fx_store_release(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)

/* On failure *@expected holds what was found; acquire and release. */
#define fx_cas(p, expected, desired)                                       \
	__atomic_compare_exchange_n((p), (expected), (desired), false,     \
				    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)
#define fx_exchange(p, v) __atomic_exchange_n((p), (v), __ATOMIC_ACQ_REL)
#define fx_fetch_add(p, v) __atomic_fetch_add((p), (v), __ATOMIC_ACQ_REL)

/* Full fence, for the slow paths. */
#define fx_fence() __atomic_thread_fence(__ATOMIC_SEQ_CST)

/* The same, behind a read-modify-write that is on the way anyway. */
#if defined(__x86_64__)
#define fx_fence_after_cas() __atomic_signal_fence(__ATOMIC_SEQ_CST)
#else
#define fx_fence_after_cas() fx_fence()
#endif

/*
 * Add to a number of eight bytes that others read, and nobody else writes:
 * one instruction where the compiler would make three of a load and a store.
 */
#if defined(__x86_64__)
#define fx_add_own(p, n)                                             \
	do {                                                         \
		_Static_assert(sizeof(*(p)) == 8, "eight bytes");    \
		__asm__ volatile("addq %1, %0" : "+m"(*(p)) \
				 : "er"((uint64_t)(n)));             \
	} while (0)
#else
#define fx_add_own(p, n) fx_store_relaxed(p, fx_load_relaxed(p) + (n))
#endif

#if defined(__x86_64__)
#define fx_cpu_relax() __builtin_ia32_pause()
#else
#define fx_cpu_relax() __atomic_signal_fence(__ATOMIC_SEQ_CST)
#endif

/* Ask for a cache line that another core wrote last, before it is needed. */
#define fx_prefetch(p) __builtin_prefetch(p)

#endif /* FX_MODEL */

#endif /* FX_BASE_ATOMIC_H */
