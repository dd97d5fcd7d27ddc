/* SPDX-License-Identifier: MIT */
/* syscall() itself, by what the table of system calls says of the number. */
#include "preload/result.h"

#include "call/owner.h"
#include "threads/alternate.h"
#include "threads/create.h"
#include "threads/futex.h"

#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

FX_NEXT(syscall);

#define PLAIN(nr, a) NEXT(syscall)(nr, a[0], a[1], a[2], a[3], a[4], a[5])

static long on_carrier(struct fx_thread *me, long nr, const long a[6])
{
	const struct fx_call_desc *desc = fx_owner_desc((unsigned)nr);
	int64_t ret = FX_IO_PLAIN;

	/* Of two descriptors one could be closed while it waits. */
	switch (nr == SYS_sendfile ? FX_CALL_WAIT : desc->call_class) {
	case FX_CALL_FD:
	case FX_CALL_DISK:
		ret = fx_io(me, (unsigned)nr, FX_IO_NO_CANCEL, NULL, a);
		break;
	case FX_CALL_NEVER:
		if (!(desc->flags & FX_CALL_SELF))
			break;
		/* fallthrough */
	default:
		fx_thread_home(me, FX_HOME_CALL);
		break;
	}
	return ret == FX_IO_PLAIN ? PLAIN(nr, a) : fx_result(ret);
}

static bool is_gone(long nr, const long a[6])
{
	return nr == SYS_tgkill ? fx_thread_is_gone((pid_t)a[0], (pid_t)a[1]) :
				  fx_thread_is_gone(-1, (pid_t)a[0]);
}

static long make(long nr, const long a[6])
{
	struct fx_thread *me;

	if (nr == SYS_seccomp)
		fx_trace_filtered();
	if (!fx_load_relaxed(&fx_threads_running) || nr < 0 ||
	    nr >= FX_NR_CALLS)
		return PLAIN(nr, a);
	switch (nr) {
	case SYS_gettid:
		me = fx_thread_self();
		return me ? me->tid : PLAIN(nr, a);
	case SYS_futex:
		if (fx_futex_is_ours((int)a[1]))
			return fx_result(fx_futex(a));
		break;
	case SYS_tgkill:
	case SYS_tkill:
	case SYS_kill:
		if (is_gone(nr, a))
			return fx_result(-ESRCH);
		break;
	case SYS_sigaltstack:
		return fx_alternate_change((const stack_t *)a[0],
					   (stack_t *)a[1]);
	case SYS_rseq:
		/* It would be the home thread's while a carrier runs. */
		errno = ENOSYS;
		return -1;
	default:
		break;
	}
	me = fx_thread_lent();
	return me ? on_carrier(me, nr, a) : PLAIN(nr, a);
}

FX_NAME long syscall(long nr, ...)
{
	va_list list;
	long a[6];

	va_start(list, nr);
	for (unsigned i = 0; i < 6; i++)
		a[i] = va_arg(list, long);
	va_end(list);
	return FX_SEEN(make(nr, a), (unsigned)nr, a[0], a[1], a[2], a[3], a[4],
		       a[5]);
}
