/* SPDX-License-Identifier: MIT */
/*
 * Names of what the kernel keeps of each thread. Credentials are changed in
 * all threads by the C library, which has to know who calls. Who changes its
 * own scheduling or namespaces stays on its own kernel thread, where they are
 * true.
 */
#include "preload/result.h"

#include "threads/create.h"

#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/fsuid.h>
#include <sys/io.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <unistd.h>

/* A thread that calls goes home; it stays there if @stay. */
static void at_home(bool stay)
{
	struct fx_thread *me = fx_thread_self();

	if (!me)
		return;
	me->worn = true;
	if (stay)
		fx_thread_stay(me, FX_HOME_IDENTITY);
	else
		fx_thread_home(me, FX_HOME_IDENTITY);
}

/* The same for another thread. */
static void stay_there(pthread_t thread)
{
	if (thread == pthread_self())
		at_home(true);
	else
		fx_thread_keep_home(thread);
}

static bool is_me(pid_t pid)
{
	const struct fx_thread *me = fx_thread_self();

	/* The C library's gettid() would tell of the carrier. */
	return pid == 0 || pid == (me ? me->tid : gettid());
}

#define HOME_FIRST(result, name, params, args, stay, nr, ...)     \
	FX_NEXT(name);                                            \
	FX_NAME result name params                                \
	{                                                         \
		at_home(stay);                                    \
		return FX_SEEN(NEXT(name) args, nr, __VA_ARGS__); \
	}

HOME_FIRST(int, setuid, (uid_t u), (u), false, SYS_setuid, u)
HOME_FIRST(int, seteuid, (uid_t u), (u), false, SYS_setresuid, -1, u, -1)
HOME_FIRST(int, setreuid, (uid_t r, uid_t e), (r, e), false, SYS_setreuid, r, e)
HOME_FIRST(int, setresuid, (uid_t r, uid_t e, uid_t s), (r, e, s), false,
	   SYS_setresuid, r, e, s)
HOME_FIRST(int, setgid, (gid_t g), (g), false, SYS_setgid, g)
HOME_FIRST(int, setegid, (gid_t g), (g), false, SYS_setresgid, -1, g, -1)
HOME_FIRST(int, setregid, (gid_t r, gid_t e), (r, e), false, SYS_setregid, r, e)
HOME_FIRST(int, setresgid, (gid_t r, gid_t e, gid_t s), (r, e, s), false,
	   SYS_setresgid, r, e, s)
HOME_FIRST(int, setgroups, (size_t n, const gid_t *g), (n, g), false,
	   SYS_setgroups, (long)n, (long)g)
HOME_FIRST(int, setfsuid, (uid_t u), (u), true, SYS_setfsuid, u)
HOME_FIRST(int, setfsgid, (gid_t g), (g), true, SYS_setfsgid, g)
HOME_FIRST(int, unshare, (int flags), (flags), true, SYS_unshare, flags)
HOME_FIRST(int, setns, (int fd, int type), (fd, type), true, SYS_setns, fd,
	   type)
HOME_FIRST(int, personality, (unsigned long p), (p), true, SYS_personality,
	   (long)p)
HOME_FIRST(int, iopl, (int level), (level), true, SYS_iopl, level)
HOME_FIRST(int, ioperm, (unsigned long from, unsigned long nr, int on),
	   (from, nr, on), true, SYS_ioperm, (long)from, (long)nr, on)

/* Several calls inside the C library, which are not seen. */
FX_NEXT(initgroups);
FX_NAME int initgroups(const char *user, gid_t group)
{
	at_home(false);
	return NEXT(initgroups)(user, group);
}

FX_NEXT(nice);
FX_NAME int nice(int more)
{
	at_home(true);
	return NEXT(nice)(more);
}

/* Without a header of the C library's own. */
int capget(void *header, void *data);
int capset(void *header, const void *data);
HOME_FIRST(int, capget, (void *header, void *data), (header, data), false,
	   SYS_capget, (long)header, (long)data)
HOME_FIRST(int, capset, (void *header, const void *data), (header, data), true,
	   SYS_capset, (long)header, (long)data)

/* Who traces is one thread of the kernel's. */
FX_NEXT(ptrace);
FX_NAME long ptrace(enum __ptrace_request request, ...)
{
	long a[4];
	va_list list;

	va_start(list, request);
	for (unsigned i = 0; i < 4; i++)
		a[i] = va_arg(list, long);
	va_end(list);
	at_home(true);
	return FX_SEEN(NEXT(ptrace)(request, a[0], a[1], a[2], a[3]),
		       SYS_ptrace, request, a[0], a[1], a[2]);
}

/*
 * Rights to pages with keys are in a register that programs set by an
 * instruction: no thread can be lent any more.
 */
FX_NEXT(pkey_alloc);
FX_NAME int pkey_alloc(unsigned flags, unsigned rights)
{
	at_home(true);
	fx_threads_keep_home();
	return FX_SEEN(NEXT(pkey_alloc)(flags, rights), SYS_pkey_alloc, flags,
		       rights);
}

FX_NEXT(sched_setaffinity);
FX_NEXT(sched_getaffinity);
FX_NEXT(pthread_setaffinity_np);
FX_NEXT(sched_setscheduler);
FX_NEXT(sched_setparam);
FX_NEXT(pthread_setschedparam);
FX_NEXT(pthread_setschedprio);
FX_NEXT(setpriority);
FX_NEXT(getpriority);
FX_NEXT(prctl);

FX_NAME int sched_setaffinity(pid_t pid, size_t size, const cpu_set_t *set)
{
	if (is_me(pid))
		at_home(true);
	return FX_SEEN(NEXT(sched_setaffinity)(pid, size, set),
		       SYS_sched_setaffinity, pid, (long)size, (long)set);
}

FX_NAME int sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set)
{
	struct fx_thread *me = fx_thread_away();

	if (me && is_me(pid))
		fx_thread_home(me, FX_HOME_IDENTITY);
	return FX_SEEN(NEXT(sched_getaffinity)(pid, size, set),
		       SYS_sched_getaffinity, pid, (long)size, (long)set);
}

FX_NAME int pthread_setaffinity_np(pthread_t thread, size_t size,
				   const cpu_set_t *set)
{
	int bad = NEXT(pthread_setaffinity_np)(thread, size, set);

	if (!bad)
		stay_there(thread);
	return bad;
}

FX_NAME int sched_setscheduler(pid_t pid, int policy,
			       const struct sched_param *param)
{
	if (is_me(pid))
		at_home(policy != SCHED_OTHER);
	return FX_SEEN(NEXT(sched_setscheduler)(pid, policy, param),
		       SYS_sched_setscheduler, pid, policy, (long)param);
}

FX_NAME int sched_setparam(pid_t pid, const struct sched_param *param)
{
	if (is_me(pid))
		at_home(false);
	return FX_SEEN(NEXT(sched_setparam)(pid, param), SYS_sched_setparam,
		       pid, (long)param);
}

FX_NAME int pthread_setschedparam(pthread_t thread, int policy,
				  const struct sched_param *param)
{
	int bad = NEXT(pthread_setschedparam)(thread, policy, param);

	if (!bad && policy != SCHED_OTHER)
		stay_there(thread);
	return bad;
}

FX_NAME int pthread_setschedprio(pthread_t thread, int priority)
{
	return NEXT(pthread_setschedprio)(thread, priority);
}

FX_NAME int setpriority(__priority_which_t which, id_t who, int priority)
{
	if (which == PRIO_PROCESS && is_me((pid_t)who))
		at_home(true);
	return FX_SEEN(NEXT(setpriority)(which, who, priority), SYS_setpriority,
		       which, (int)who, priority);
}

/* From -20 on; the kernel's from 40 down, and -1 may be either here. */
static int read_priority(__priority_which_t which, id_t who)
{
	int got, before = errno;

	errno = 0;
	got = NEXT(getpriority)(which, who);
	if (got == -1 && errno)
		return INT_MIN;
	errno = before;
	return got;
}

FX_NAME int getpriority(__priority_which_t which, id_t who)
{
	struct fx_thread *me = fx_thread_away();
	int got;

	if (me && which == PRIO_PROCESS && who == 0)
		fx_thread_home(me, FX_HOME_IDENTITY);
	got = FX_SEEN_AS(read_priority(which, who),
			 fx_got == INT_MIN ? -1 : 20 - fx_got, SYS_getpriority,
			 which, (int)who);
	return got == INT_MIN ? -1 : got;
}

/* Of the process, or of its memory: whichever thread asks. */
static bool is_of_process(int option)
{
	switch (option) {
	case PR_SET_VMA:
	case PR_SET_DUMPABLE:
	case PR_GET_DUMPABLE:
	case PR_SET_PTRACER:
	case PR_SET_CHILD_SUBREAPER:
	case PR_GET_CHILD_SUBREAPER:
	case PR_SET_THP_DISABLE:
	case PR_GET_THP_DISABLE:
	case PR_SET_MM:
		return true;
	default:
		return false;
	}
}

static bool changes_thread(int option)
{
	switch (option) {
	case PR_SET_SECCOMP:
	case PR_SET_NO_NEW_PRIVS:
	case PR_CAPBSET_DROP:
	case PR_CAP_AMBIENT:
	case PR_SET_KEEPCAPS:
	case PR_SET_SECUREBITS:
	case PR_SET_TIMERSLACK:
	case PR_SET_IO_FLUSHER:
	case PR_SCHED_CORE:
		return true;
	default:
		return false;
	}
}

FX_NAME int prctl(int option, ...)
{
	struct fx_thread *me = fx_thread_away();
	unsigned long a[4];
	va_list list;

	va_start(list, option);
	for (unsigned i = 0; i < 4; i++)
		a[i] = va_arg(list, unsigned long);
	va_end(list);
	if (option == PR_SET_SECCOMP)
		fx_trace_filtered();
	if (me && !is_of_process(option))
		at_home(changes_thread(option));
	return FX_SEEN(NEXT(prctl)(option, a[0], a[1], a[2], a[3]), SYS_prctl,
		       option, a[0], a[1], a[2], a[3]);
}
