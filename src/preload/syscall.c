/* SPDX-License-Identifier: MIT */
/* syscall() itself, by what the table of system calls says of the number. */
#include "preload/result.h"

#include "call/owner.h"
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

	switch (desc->call_class) {
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

FX_NAME long syscall(long nr, ...)
{
	struct fx_thread *me;
	va_list list;
	long a[6];

	va_start(list, nr);
	for (unsigned i = 0; i < 6; i++)
		a[i] = va_arg(list, long);
	va_end(list);
	if (!fx_load_relaxed(&fx_threads_running) || nr < 0 ||
	    nr >= FX_NR_CALLS)
		return PLAIN(nr, a);
	switch (nr) {
	case SYS_gettid:
		return gettid();
	case SYS_futex:
		if (fx_futex_is_ours((int)a[1]))
			return fx_result(fx_futex(a));
		break;
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
