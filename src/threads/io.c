/* SPDX-License-Identifier: MIT */
/* System calls of threads; see threads/io.h. */
#include "threads/io.h"

#include "engine/quiet.h"

#include <errno.h>
#include <limits.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>

/* A call, and how it is made. */
struct fx_io {
	struct flexsc_entry *call;
	const struct fx_deadline *deadline;
	bool cancel; /* it is a cancelation point */
};

bool fx_interrupted(const struct fx_thread *me, uint32_t handlers,
		    uint32_t no_restart, bool restarts)
{
	if (me->handlers == handlers)
		return false;
	return !restarts || me->no_restart != no_restart;
}

/* signal(7): never restarted, whatever SA_RESTART says. */
static bool never_restarts(unsigned nr)
{
	switch (nr) {
	case SYS_poll:
	case SYS_ppoll:
	case SYS_select:
	case SYS_pselect6:
	case SYS_epoll_wait:
	case SYS_epoll_pwait:
	case SYS_epoll_pwait2:
	case SYS_nanosleep:
	case SYS_clock_nanosleep:
	case SYS_semop:
	case SYS_semtimedop:
	case SYS_msgsnd:
	case SYS_msgrcv:
	case SYS_io_getevents:
	case FX_READY_IN:
	case FX_READY_OUT:
		return true;
	default:
		return false;
	}
}

static bool has_timeout(int fd, int option)
{
	struct timeval tv = { 0, 0 };
	socklen_t size = sizeof(tv);

	return fx_arch_syscall(SYS_getsockopt, fd, SOL_SOCKET, option,
			       (long)&tv, (long)&size, 0) == 0 &&
	       (tv.tv_sec || tv.tv_usec);
}

static bool restarts(unsigned nr, const __u64 args[6])
{
	const struct fx_call_desc *desc = fx_owner_desc(nr);

	if (never_restarts(nr))
		return false;
	if (desc->call_class != FX_CALL_FD)
		return true;
	return !has_timeout((int)args[desc->fd_arg], desc->flags & FX_CALL_OUT ?
							     SO_SNDTIMEO :
							     SO_RCVTIMEO);
}

void fx_raise_here(struct fx_thread *me, int signal)
{
	struct sigaction action;

	if (sigaction(signal, NULL, &action) == 0 &&
	    action.sa_handler == SIG_IGN)
		return;
	fx_thread_home(me, FX_HOME_SIGNAL);
	fx_arch_syscall(SYS_tgkill,
			fx_arch_syscall(SYS_getpid, 0, 0, 0, 0, 0, 0), me->tid,
			signal, 0, 0, 0);
}

static bool no_signal(unsigned nr, const __u64 args[6])
{
	switch (nr) {
	case SYS_sendto:
	case SYS_sendmmsg:
		return args[3] & MSG_NOSIGNAL;
	case SYS_sendmsg:
		return args[2] & MSG_NOSIGNAL;
	default:
		return false;
	}
}

/* The carrier has these blocked; the thread may not. */
static void raise_of(struct fx_thread *me, unsigned nr, const __u64 args[6],
		     int64_t ret)
{
	if (!fx_call_signals[nr])
		return;
	if (ret == -EPIPE && !no_signal(nr, args))
		fx_raise_here(me, SIGPIPE);
	else if (ret == -EFBIG)
		fx_raise_here(me, SIGXFSZ);
}

/* Instead of a result: a handler has run, and the call goes on. */
#define AGAIN (FX_IO_PLAIN - 1)
/* Instead of what fx_call_begin() returned. */
#define NOT_BEGUN UINT_MAX

/* It was begun, inside. Leaves. */
static int64_t wait_for(struct fx_thread *me, const struct fx_io *io,
			unsigned begun)
{
	struct flexsc_entry *call = io->call;
	const struct fx_call_desc *desc = fx_owner_desc(call->nr);
	uint32_t handlers = me->handlers, rigid = me->no_restart;
	struct fx_wait wait = { .where = desc->name,
				.deadline = io->deadline,
				.mask = fx_thread_listens(me, io->cancel) };
	enum fx_reason why;
	int64_t ret;

	ret = fx_call_rest(&me->task, call, begun, &wait, &why);
	fx_thread_leave(me);
	if (ret != -ECANCELED || !why) {
		raise_of(me, call->nr, call->args, ret);
		return ret;
	}
	if (why == FX_WOKEN_TIMEOUT)
		return -ETIMEDOUT;
	if (why == FX_WOKEN_SIGNAL &&
	    fx_interrupted(me, handlers, rigid,
			   restarts(call->nr, call->args)))
		return -EINTR;
	return AGAIN;
}

static unsigned begin(struct fx_thread *me, const struct fx_call_desc *desc,
		      struct flexsc_entry *call)
{
	if (fx_likely(!(desc->flags & FX_CALL_CLOSES)))
		return fx_call_begin(&me->task, call);
	call->ret = fx_call(&me->task, call, desc->name, NULL, 0, NULL);
	return 0;
}

/* @begun: NOT_BEGUN, or inside. */
static int64_t carry_on(struct fx_thread *me, const struct fx_io *io,
			unsigned begun)
{
	struct flexsc_entry *call = io->call;
	const struct fx_call_desc *desc = fx_owner_desc(call->nr);
	int64_t ret = AGAIN;

	if (begun != NOT_BEGUN)
		ret = wait_for(me, io, begun);
	while (ret == AGAIN) {
		if (io->cancel)
			fx_thread_cancel_point(me);
		if (fx_unlikely(!fx_thread_lent()))
			return FX_IO_PLAIN;
		fx_thread_enter(me);
		if (fx_unlikely(!me->task.carrier)) {
			/* Brought home since: once more. */
			fx_thread_leave(me);
			continue;
		}
		call->ret = 0;
		begun = begin(me, desc, call);
		if (begun) {
			ret = wait_for(me, io, begun);
			continue;
		}
		ret = call->ret;
		fx_thread_leave(me);
		raise_of(me, call->nr, call->args, ret);
	}
	return ret;
}

static __attribute__((noinline)) int64_t
carry_on_usual(struct fx_thread *me, struct flexsc_entry *call, unsigned begun)
{
	struct fx_io io = { .call = call, .cancel = true };

	return carry_on(me, &io, begun);
}

int64_t fx_io_call(struct fx_thread *me, struct flexsc_entry *call)
{
	unsigned begun;

	if (fx_unlikely(fx_load_relaxed(&me->task.pending)))
		return carry_on_usual(me, call, NOT_BEGUN);
	fx_thread_enter(me);
	if (fx_unlikely(!me->task.carrier)) {
		fx_thread_leave(me);
		return carry_on_usual(me, call, NOT_BEGUN);
	}
	begun = fx_call_begin(&me->task, call);
	if (fx_unlikely(begun))
		return carry_on_usual(me, call, begun);
	fx_thread_leave(me);
	if (fx_unlikely(call->ret < 0))
		raise_of(me, call->nr, call->args, call->ret);
	return call->ret;
}

int64_t fx_io(struct fx_thread *me, unsigned nr, unsigned how,
	      const struct fx_deadline *deadline, const long args[6])
{
	struct flexsc_entry call = { .nr = (uint16_t)nr,
				     .nr_args = fx_owner_desc(nr)->nr_args };
	struct fx_io io = { .call = &call,
			    .deadline = deadline,
			    .cancel = !(how & FX_IO_NO_CANCEL) };

	for (unsigned i = 0; i < 6; i++)
		call.args[i] = (uint64_t)args[i];
	return carry_on(me, &io, NOT_BEGUN);
}

int64_t fx_io_close(unsigned nr, const long args[6])
{
	struct fx_thread *me = fx_thread_lent();
	struct flexsc_entry call = { .nr = (uint16_t)nr,
				     .nr_args = fx_owner_desc(nr)->nr_args };
	int64_t ret = FX_IO_PLAIN;

	if (me)
		ret = fx_io(me, nr, nr == SYS_close ? 0 : FX_IO_NO_CANCEL, NULL,
			    args);
	me = fx_thread_self();
	/* In a child of vfork() the descriptors are others. */
	if (ret != FX_IO_PLAIN || !fx_load_relaxed(&fx_threads_running) ||
	    (me && me->vforked))
		return ret;
	if (nr == SYS_close)
		pthread_testcancel();
	for (unsigned i = 0; i < 6; i++)
		call.args[i] = (uint64_t)args[i];
	if (me)
		fx_thread_enter(me);
	ret = fx_call(me ? &me->task : NULL, &call, "close", NULL, 0, NULL);
	if (me)
		fx_thread_leave(me);
	return ret;
}

int fx_io_closing(int fd)
{
	struct fx_thread *me = fx_thread_self();
	bool begun;

	if (fd < 0 || !fx_load_relaxed(&fx_threads_running) ||
	    (me && me->vforked))
		return -1;
	if (me)
		fx_thread_enter(me);
	begun = fx_closing_begin(me ? &me->task : NULL, fd);
	if (me)
		fx_thread_leave(me);
	return begun ? fd : -1;
}

void fx_io_closing_end(int closing)
{
	if (closing >= 0)
		fx_closing_end(closing);
}
