/* SPDX-License-Identifier: MIT */
/*
 * The operations of base/atomic.h as calls into the interleaving checker.
 *
 * Included by base/atomic.h when FX_MODEL is defined.  Same names, arguments
 * and value types as there; each takes part in the schedule that explore.h
 * enumerates, over x86-TSO store buffers.
 */
#ifndef FX_MODEL_ATOMIC_H
#define FX_MODEL_ATOMIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

uint64_t fx_model_load(const volatile void *p, size_t size);
void fx_model_store(volatile void *p, size_t size, uint64_t value);
bool fx_model_cas(volatile void *p, size_t size, volatile void *expected,
		  uint64_t desired);
uint64_t fx_model_exchange(volatile void *p, size_t size, uint64_t value);
uint64_t fx_model_fetch_add(volatile void *p, size_t size, uint64_t value);
void fx_model_fence(void);
void fx_model_relax(void);

/* Value of integer or pointer type as raw bits; the checker masks to size. */
#define FX_MODEL_BITS(v) ((uint64_t)(uintptr_t)(v))
#define FX_MODEL_TYPE(p) __typeof__(*(p))

#define FX_MODEL_LOAD(p)                                                   \
	({                                                                 \
		(FX_MODEL_TYPE(p))(uintptr_t)fx_model_load((p),            \
							   sizeof(*(p)));  \
	})

#define FX_MODEL_STORE(p, v)                                               \
	do {                                                               \
		FX_MODEL_TYPE(p) fx_store_value = (v);                     \
		fx_model_store((p), sizeof(*(p)),                          \
			       FX_MODEL_BITS(fx_store_value));             \
	} while (0)

#define fx_load_relaxed(p) FX_MODEL_LOAD(p)
#define fx_load_acquire(p) FX_MODEL_LOAD(p)
#define fx_store_relaxed(p, v) FX_MODEL_STORE(p, v)
#define fx_store_release(p, v) FX_MODEL_STORE(p, v)

#define fx_cas(p, expected, desired)                                       \
	({                                                                 \
		FX_MODEL_TYPE(p) *fx_cas_expected = (expected);            \
		FX_MODEL_TYPE(p) fx_cas_desired = (desired);               \
		fx_model_cas((p), sizeof(*(p)), fx_cas_expected,           \
			     FX_MODEL_BITS(fx_cas_desired));               \
	})

#define fx_exchange(p, v)                                                  \
	({                                                                 \
		FX_MODEL_TYPE(p) fx_exchange_value = (v);                  \
		(FX_MODEL_TYPE(p))(uintptr_t)fx_model_exchange(            \
			(p), sizeof(*(p)), FX_MODEL_BITS(fx_exchange_value)); \
	})

#define fx_fetch_add(p, v)                                                 \
	({                                                                 \
		(FX_MODEL_TYPE(p))(uintptr_t)fx_model_fetch_add(           \
			(p), sizeof(*(p)), (uint64_t)(v));                 \
	})

#define fx_fence() fx_model_fence()
#define fx_fence_after_cas() ((void)0)
#define fx_cpu_relax() fx_model_relax()
#define fx_prefetch(p) ((void)(p))

#endif /* FX_MODEL_ATOMIC_H */
