/* SPDX-License-Identifier: MIT */
/*
 * Making calls without letting SIGPIPE and SIGXFSZ out, as cheaply as the
 * call and the process allow; see engine/quiet.h.
 */
#include "engine/quiet.h"

#include "arch/arch.h"
#include "engine/guard.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>

bool fx_call_signals_blocked;

const bool fx_call_signals[FX_NR_CALLS] = {
	[SYS_write] = true,	[SYS_writev] = true,
	[SYS_pwrite64] = true,	[SYS_pwritev] = true,
	[SYS_pwritev2] = true,	[SYS_sendfile] = true,
	[SYS_splice] = true,	[SYS_tee] = true,
	[SYS_vmsplice] = true,	[SYS_copy_file_range] = true,
	[SYS_truncate] = true,	[SYS_ftruncate] = true,
	[SYS_fallocate] = true, [SYS_sendto] = true,
	[SYS_sendmsg] = true,	[SYS_sendmmsg] = true,
};

/* A part that was written before the pipe broke hides the EPIPE. */
static bool may_have_raised(const struct flexsc_entry *call, int64_t ret)
{
	if (ret < 0)
		return ret == -EPIPE || ret == -EFBIG;
	switch (call->nr) {
	case SYS_write:
	case SYS_pwrite64:
		return (uint64_t)ret != call->args[2];
	case SYS_sendfile:
		return (uint64_t)ret != call->args[3];
	default:
		return true;
	}
}

/*
 * The kernel sends both signals to the calling thread itself, so a mask of
 * this thread is enough; one that was pending before stays pending.
 */
int64_t fx_call_guarded(const struct flexsc_entry *call, struct fx_guard *guard)
{
	sigset_t quiet, before, pending, ours;
	struct timespec now = { 0, 0 };
	int64_t ret;
	int saved;

	if (!fx_call_may_signal(call->nr))
		return guard ? fx_guard_call(guard, call) : fx_call_raw(call);
	saved = errno;
	sigemptyset(&quiet);
	sigaddset(&quiet, SIGPIPE);
	sigaddset(&quiet, SIGXFSZ);
	pthread_sigmask(SIG_BLOCK, &quiet, &before);
	/* Only what was blocked can be pending already. */
	sigemptyset(&pending);
	if (sigismember(&before, SIGPIPE) || sigismember(&before, SIGXFSZ))
		sigpending(&pending);
	ret = guard ? fx_guard_call(guard, call) : fx_call_raw(call);
	sigemptyset(&ours);
	if (!sigismember(&pending, SIGPIPE))
		sigaddset(&ours, SIGPIPE);
	if (!sigismember(&pending, SIGXFSZ))
		sigaddset(&ours, SIGXFSZ);
	if (may_have_raised(call, ret))
		while (sigtimedwait(&ours, NULL, &now) > 0)
			;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = saved;
	return ret;
}

int64_t fx_call_plain(const struct flexsc_entry *call)
{
	return fx_call_guarded(call, NULL);
}

void fx_call_settle(const struct flexsc_entry *call, int64_t ret)
{
	struct timespec now = { 0, 0 };
	sigset_t both;
	int saved = errno;

	if (!fx_call_may_signal(call->nr) || !may_have_raised(call, ret))
		return;
	sigemptyset(&both);
	sigaddset(&both, SIGPIPE);
	sigaddset(&both, SIGXFSZ);
	while (sigtimedwait(&both, NULL, &now) > 0)
		;
	errno = saved;
}

__thread enum fx_pipe_signal fx_pipe_signal
	__attribute__((tls_model("initial-exec"), visibility("hidden")));
static __thread enum {
	SIZE_UNKNOWN,
	SIZE_FREE,
	SIZE_LIMITED
} file_size __attribute__((tls_model("initial-exec")));

void fx_call_round(void)
{
	fx_pipe_signal = FX_PIPE_UNKNOWN;
	file_size = SIZE_UNKNOWN;
}

int64_t fx_call_storage(const struct flexsc_entry *call, struct fx_guard *guard)
{
	if (fx_call_signals_blocked)
		return guard ? fx_guard_call(guard, call) : fx_call_raw(call);
	if (file_size == SIZE_UNKNOWN) {
		struct rlimit limit;
		int saved = errno;

		file_size = getrlimit(RLIMIT_FSIZE, &limit) == 0 &&
					    limit.rlim_cur == RLIM_INFINITY ?
				    SIZE_FREE :
				    SIZE_LIMITED;
		errno = saved;
	}
	if (file_size == SIZE_LIMITED)
		return fx_call_guarded(call, guard);
	return guard ? fx_guard_call(guard, call) : fx_call_raw(call);
}

int64_t fx_call_quiet(const struct flexsc_entry *call)
{
	if (fx_call_signals_blocked)
		return fx_call_raw(call);
	if (fx_pipe_signal == FX_PIPE_UNKNOWN) {
		struct sigaction action;
		int saved = errno;

		fx_pipe_signal = sigaction(SIGPIPE, NULL, &action) == 0 &&
						 action.sa_handler == SIG_IGN ?
					 FX_PIPE_IGNORED :
					 FX_PIPE_TAKEN;
		errno = saved;
	}
	return fx_pipe_signal == FX_PIPE_IGNORED ? fx_call_raw(call) :
						   fx_call_plain(call);
}
