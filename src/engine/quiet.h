/* SPDX-License-Identifier: MIT */
/*
 * Calls as they are, but for two signals: what a posted call raises must not
 * reach the application. Its result says the same (-EPIPE, -EFBIG).
 */
#ifndef FX_ENGINE_QUIET_H
#define FX_ENGINE_QUIET_H

#include "arch/arch.h"
#include "base/types.h"
#include "engine/desc.h"

#include <linux/flexsc.h>

struct fx_guard;

extern const bool fx_call_signals[FX_NR_CALLS];

/*
 * Set once, before the first call: every thread that makes posted calls has
 * both signals blocked for good. So what a call raises stays pending there,
 * and nothing is to be done around it. (Thread-local notes would be wrong
 * there too: they are a user thread's, the mask is its carrier's.)
 */
extern bool fx_call_signals_blocked;

/* Must SIGPIPE or SIGXFSZ be kept in, when this number is called? */
static inline bool fx_call_may_signal(unsigned int nr)
{
	return nr < FX_NR_CALLS && fx_call_signals[nr] &&
	       !fx_call_signals_blocked;
}

/* The call itself, nothing around it. */
static inline int64_t fx_call_raw(const struct flexsc_entry *call)
{
	const __u64 *a = call->args;

	return fx_arch_syscall(call->nr, (long)a[0], (long)a[1], (long)a[2],
			       (long)a[3], (long)a[4], (long)a[5]);
}

/**
 * fx_call_plain - the call itself, with SIGPIPE and SIGXFSZ suppressed
 *
 * For threads of the application; syscall threads have them blocked anyway.
 */
int64_t fx_call_plain(const struct flexsc_entry *call);

/* The same under a guard, or without one (NULL). */
int64_t fx_call_guarded(const struct flexsc_entry *call,
			struct fx_guard *guard);

/*
 * The same for calls that only SIGPIPE can come of. A program that ignores
 * it is asked about that once a round, not at each call.
 */
int64_t fx_call_quiet(const struct flexsc_entry *call);

enum fx_pipe_signal {
	FX_PIPE_UNKNOWN,
	FX_PIPE_IGNORED,
	FX_PIPE_TAKEN
};

extern __thread enum fx_pipe_signal fx_pipe_signal
	__attribute__((tls_model("initial-exec"), visibility("hidden")));

/* Would fx_call_quiet() make nothing but the call? */
static inline bool fx_call_pipe_ignored(void)
{
	return fx_call_signals_blocked || fx_pipe_signal == FX_PIPE_IGNORED;
}

/*
 * Into a regular file: only SIGXFSZ can come of it, and only where the size
 * of files is limited, which is asked once a round. @guard may be NULL.
 */
int64_t fx_call_storage(const struct flexsc_entry *call,
			struct fx_guard *guard);

/* A round is over: what is known of signals and limits may change. */
void fx_call_round(void);

/*
 * For syscall threads, which have both signals blocked for good: take away
 * what a call raised. A later call with a signal mask of its own (ppoll)
 * would let it through.
 */
void fx_call_settle(const struct flexsc_entry *call, int64_t ret);

#endif /* FX_ENGINE_QUIET_H */
