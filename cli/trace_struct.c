/* SPDX-License-Identifier: MIT */
/* Structures, lists of numbers and of strings; see cli/trace_print.h. */
#include "cli/trace_print.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <mqueue.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/times.h>
#include <sys/utsname.h>
#include <time.h>

#include <flexsc/arguments.h>

enum {
	MOST_STRINGS = 32
};

static void print_pointer(struct text *text, uint64_t address)
{
	text_add(text, address ? "%#lx" : "NULL", address);
}

static void print_signal(struct text *text, int signal)
{
	char name[16];

	text_add(text, "%s", trace_signal_name(signal, name));
}

/* Times --------------------------------------------------------------------------- */

static void print_timeval(struct text *text, const char *before,
			  const struct timeval *tv)
{
	text_add(text, "%s{tv_sec=%ld, tv_usec=%ld}", before, (long)tv->tv_sec,
		 (long)tv->tv_usec);
}

static void print_timespec(struct text *text, const char *before,
			   const struct timespec *ts)
{
	text_add(text, "%s{tv_sec=%ld, tv_nsec=%ld}", before, (long)ts->tv_sec,
		 ts->tv_nsec);
}

static void print_itimerspec(struct text *text, const struct itimerspec *it)
{
	print_timespec(text, "{it_interval=", &it->it_interval);
	print_timespec(text, ", it_value=", &it->it_value);
	text_add(text, "}");
}

static void print_itimerval(struct text *text, const struct itimerval *it)
{
	print_timeval(text, "{it_interval=", &it->it_interval);
	print_timeval(text, ", it_value=", &it->it_value);
	text_add(text, "}");
}

static void print_rusage(struct text *text, const struct rusage *usage)
{
	print_timeval(text, "{ru_utime=", &usage->ru_utime);
	print_timeval(text, ", ru_stime=", &usage->ru_stime);
	text_add(text, ", ...}");
}

static void print_tms(struct text *text, const struct tms *tms)
{
	text_add(
		text,
		"{tms_utime=%ld, tms_stime=%ld, tms_cutime=%ld, tms_cstime=%ld}",
		tms->tms_utime, tms->tms_stime, tms->tms_cutime,
		tms->tms_cstime);
}

/* Signals ------------------------------------------------------------------------- */

static void print_sigaction(struct text *text, const uint64_t action[4])
{
	static const struct named handlers[] = { { 0, "SIG_DFL" },
						 { 1, "SIG_IGN" } };
	static const struct named flags[] = {
		{ 0x04000000, "SA_RESTORER" },
		{ SA_ONSTACK, "SA_ONSTACK" },
		{ SA_RESTART, "SA_RESTART" },
		{ SA_NODEFER, "SA_NODEFER" },
		{ 0x80000000, "SA_RESETHAND" },
		{ SA_SIGINFO, "SA_SIGINFO" },
		{ SA_NOCLDSTOP, "SA_NOCLDSTOP" },
		{ SA_NOCLDWAIT, "SA_NOCLDWAIT" },
	};

	text_add(text, action[1] & SA_SIGINFO && action[0] > 1 ?
			       "{sa_sigaction=" :
			       "{sa_handler=");
	text_one(text, action[0], handlers, NR_NAMED(handlers), NULL);
	text_add(text, ", sa_mask=");
	trace_print_mask(text, action[3]);
	text_add(text, ", sa_flags=");
	text_flags(text, (uint32_t)action[1], flags, NR_NAMED(flags), NULL);
	if (action[2])
		text_add(text, ", sa_restorer=%#lx", action[2]);
	text_add(text, "}");
}

static void print_sigevent(struct text *text, const struct sigevent *e)
{
	static const struct named kinds[] = { NAMED(SIGEV_SIGNAL),
					      NAMED(SIGEV_NONE),
					      NAMED(SIGEV_THREAD),
					      NAMED(SIGEV_THREAD_ID) };

	text_add(text, "{");
	if (e->sigev_value.sival_ptr)
		text_add(text, "sigev_value={sival_int=%d, sival_ptr=%p}, ",
			 e->sigev_value.sival_int, e->sigev_value.sival_ptr);
	text_add(text, "sigev_signo=");
	if (e->sigev_signo)
		print_signal(text, e->sigev_signo);
	else
		text_add(text, "0");
	text_add(text, ", sigev_notify=");
	text_one(text, (uint64_t)e->sigev_notify, kinds, NR_NAMED(kinds),
		 "SIGEV_???");
	if (e->sigev_notify == SIGEV_THREAD_ID)
		text_add(text, ", sigev_notify_thread_id=%d",
			 (int)e->_sigev_un._tid);
	text_add(text, "}");
}

static void print_stack(struct text *text, const stack_t *stack)
{
	static const struct named flags[] = {
		NAMED(SS_ONSTACK),
		NAMED(SS_DISABLE),
		{ 1u << 31, "SS_AUTODISARM" },
	};

	text_add(text, "{ss_sp=");
	print_pointer(text, (uintptr_t)stack->ss_sp);
	text_add(text, ", ss_flags=");
	text_flags(text, (uint32_t)stack->ss_flags, flags, NR_NAMED(flags),
		   "SS_???");
	text_add(text, ", ss_size=%zu}", stack->ss_size);
}

/* The machine, files, limits ------------------------------------------------------- */

static void print_limit(struct text *text, const char *before, uint64_t limit)
{
	text_add(text, "%s", before);
	if (limit == UINT64_MAX)
		text_add(text, "RLIM64_INFINITY");
	else if (limit > 1024 && limit % 1024 == 0)
		text_add(text, "%lu*1024", limit / 1024);
	else
		text_add(text, "%lu", limit);
}

static void print_rlimit(struct text *text, const struct rlimit *limit)
{
	print_limit(text, "{rlim_cur=", limit->rlim_cur);
	print_limit(text, ", rlim_max=", limit->rlim_max);
	text_add(text, "}");
}

static void print_utsname(struct text *text, const struct utsname *name)
{
	const char *const value[] = { name->sysname, name->nodename };
	const char *const title[] = { "{sysname=", ", nodename=" };

	for (unsigned int i = 0; i < 2; i++) {
		text_add(text, "%s", title[i]);
		text_quote(text, value[i],
			   strnlen(value[i], sizeof(name->sysname)));
	}
	text_add(text, ", ...}");
}

static void print_sysinfo(struct text *text, const struct sysinfo *s)
{
	text_add(text,
		 "{uptime=%ld, loads=[%lu, %lu, %lu], totalram=%lu, "
		 "freeram=%lu, sharedram=%lu, bufferram=%lu, totalswap=%lu, "
		 "freeswap=%lu, procs=%u, totalhigh=%lu, freehigh=%lu, "
		 "mem_unit=%u}",
		 s->uptime, s->loads[0], s->loads[1], s->loads[2], s->totalram,
		 s->freeram, s->sharedram, s->bufferram, s->totalswap,
		 s->freeswap, s->procs, s->totalhigh, s->freehigh, s->mem_unit);
}

static void print_statfs(struct text *text, const struct statfs *st)
{
	static const struct named types[] = {
		{ 0xef53, "EXT2_SUPER_MAGIC" },
		{ 0x01021994, "TMPFS_MAGIC" },
		{ 0x58465342, "XFS_SUPER_MAGIC" },
		{ 0x9123683e, "BTRFS_SUPER_MAGIC" },
		{ 0x794c7630, "OVERLAYFS_SUPER_MAGIC" },
		{ 0x6969, "NFS_SUPER_MAGIC" },
		{ 0x9fa0, "PROC_SUPER_MAGIC" },
		{ 0x62656572, "SYSFS_MAGIC" },
		{ 0x65735546, "FUSE_SUPER_MAGIC" },
		{ 0x63677270, "CGROUP2_SUPER_MAGIC" },
		{ 0x1cd1, "DEVPTS_SUPER_MAGIC" },
		{ 0x958458f6, "HUGETLBFS_MAGIC" },
	};
	static const struct named flags[] = {
		{ 32, "ST_VALID" },
		NAMED(ST_RDONLY),
		NAMED(ST_NOSUID),
		NAMED(ST_NODEV),
		NAMED(ST_NOEXEC),
		NAMED(ST_SYNCHRONOUS),
		NAMED(ST_MANDLOCK),
		NAMED(ST_NOATIME),
		NAMED(ST_NODIRATIME),
		NAMED(ST_RELATIME),
		{ 0x2000, "ST_NOSYMFOLLOW" },
	};

	text_add(text, "{f_type=");
	text_one(text, (uint64_t)st->f_type, types, NR_NAMED(types), NULL);
	text_add(text,
		 ", f_bsize=%ld, f_blocks=%lu, f_bfree=%lu, f_bavail=%lu, "
		 "f_files=%lu, f_ffree=%lu, f_fsid={val=[%#x, %#x]}, "
		 "f_namelen=%ld, f_frsize=%ld, f_flags=",
		 (long)st->f_bsize, st->f_blocks, st->f_bfree, st->f_bavail,
		 st->f_files, st->f_ffree, (unsigned int)st->f_fsid.__val[0],
		 (unsigned int)st->f_fsid.__val[1], (long)st->f_namelen,
		 (long)st->f_frsize);
	text_flags(text, (uint64_t)st->f_flags, flags, NR_NAMED(flags),
		   "ST_???");
	text_add(text, "}");
}

static void print_statx(struct text *text, const struct statx *st)
{
	static const struct named attributes[] = {
		NAMED(STATX_ATTR_COMPRESSED),
		NAMED(STATX_ATTR_IMMUTABLE),
		NAMED(STATX_ATTR_APPEND),
		NAMED(STATX_ATTR_NODUMP),
		NAMED(STATX_ATTR_ENCRYPTED),
		NAMED(STATX_ATTR_AUTOMOUNT),
		{ 0x2000, "STATX_ATTR_MOUNT_ROOT" },
	};

	text_add(text, "{stx_mask=");
	trace_print_statx_mask(text, st->stx_mask);
	text_add(text, ", stx_attributes=");
	text_flags(text, st->stx_attributes, attributes, NR_NAMED(attributes),
		   "STATX_ATTR_???");
	text_add(text, ", stx_mode=");
	trace_print_file_mode(text, st->stx_mode);
	text_add(text, ", stx_size=%lu, ...}", (uint64_t)st->stx_size);
}

static void print_open_how(struct text *text, const struct open_how *how)
{
	static const struct named resolves[] = {
		NAMED(RESOLVE_NO_XDEV),	    NAMED(RESOLVE_NO_MAGICLINKS),
		NAMED(RESOLVE_NO_SYMLINKS), NAMED(RESOLVE_BENEATH),
		NAMED(RESOLVE_IN_ROOT),	    { 0x20, "RESOLVE_CACHED" },
	};

	text_add(text, "{flags=");
	trace_print_open_flags(text, (int)how->flags);
	if (how->flags & O_CREAT || how->mode) {
		text_add(text, ", mode=");
		trace_print_mode(text, (unsigned int)how->mode);
	}
	text_add(text, ", resolve=");
	text_flags(text, how->resolve, resolves, NR_NAMED(resolves),
		   "RESOLVE_???");
	text_add(text, "}");
}

static void print_mq_attr(struct text *text, const struct mq_attr *attr)
{
	text_add(text, "{mq_flags=");
	if (attr->mq_flags == O_NONBLOCK)
		text_add(text, "O_NONBLOCK");
	else
		text_add(text, attr->mq_flags ? "%#lx" : "%ld", attr->mq_flags);
	text_add(text, ", mq_maxmsg=%ld, mq_msgsize=%ld, mq_curmsgs=%ld}",
		 attr->mq_maxmsg, attr->mq_msgsize, attr->mq_curmsgs);
}

/* Any of them ----------------------------------------------------------------------- */

/* Large enough, and aligned, for all that the table has. */
union any {
	int number;
	struct itimerspec itimerspec;
	struct itimerval itimerval;
	struct mq_attr mq_attr;
	struct open_how open_how;
	struct rlimit rlimit;
	struct rusage rusage;
	uint64_t sigaction[4];
	struct sigevent sigevent;
	siginfo_t siginfo;
	uint64_t sigset;
	stack_t stack;
	struct statfs statfs;
	struct statx statx;
	struct sysinfo sysinfo;
	struct timeval timeval;
	struct tms tms;
	struct utsname utsname;
};

static void print_times(struct text *text, unsigned int which,
			const union any *any)
{
	switch (which) {
	case FLEXSC_STRUCT_ITIMERSPEC:
		print_itimerspec(text, &any->itimerspec);
		break;
	case FLEXSC_STRUCT_ITIMERVAL:
		print_itimerval(text, &any->itimerval);
		break;
	case FLEXSC_STRUCT_RUSAGE:
		print_rusage(text, &any->rusage);
		break;
	case FLEXSC_STRUCT_TIMEVAL:
		print_timeval(text, "", &any->timeval);
		break;
	case FLEXSC_STRUCT_TMS:
		print_tms(text, &any->tms);
		break;
	default:
		break;
	}
}

static void print_any(struct text *text, unsigned int which,
		      const union any *any)
{
	switch (which) {
	case FLEXSC_STRUCT_ID:
	case FLEXSC_STRUCT_SCHED_PARAM:
		text_add(text, "[%d]", any->number);
		break;
	case FLEXSC_STRUCT_MQ_ATTR:
		print_mq_attr(text, &any->mq_attr);
		break;
	case FLEXSC_STRUCT_OPEN_HOW:
		print_open_how(text, &any->open_how);
		break;
	case FLEXSC_STRUCT_RLIMIT:
		print_rlimit(text, &any->rlimit);
		break;
	case FLEXSC_STRUCT_SIGACTION:
		print_sigaction(text, any->sigaction);
		break;
	case FLEXSC_STRUCT_SIGEVENT:
		print_sigevent(text, &any->sigevent);
		break;
	case FLEXSC_STRUCT_SIGINFO:
		trace_print_siginfo(text, &any->siginfo);
		break;
	case FLEXSC_STRUCT_SIGSET:
		trace_print_mask(text, any->sigset);
		break;
	case FLEXSC_STRUCT_STACK:
		print_stack(text, &any->stack);
		break;
	case FLEXSC_STRUCT_STATFS:
		print_statfs(text, &any->statfs);
		break;
	case FLEXSC_STRUCT_STATX:
		print_statx(text, &any->statx);
		break;
	case FLEXSC_STRUCT_SYSINFO:
		print_sysinfo(text, &any->sysinfo);
		break;
	case FLEXSC_STRUCT_UTSNAME:
		print_utsname(text, &any->utsname);
		break;
	default:
		print_times(text, which, any);
	}
}

void trace_print_struct(struct text *text, const struct trace_arg *a)
{
	unsigned int which = (unsigned char)a->kind & ~1u;
	size_t size = flexsc_struct_size[(which - FLEXSC_STRUCT_ID) / 2];
	uint64_t at = a->record->args[a->i];
	bool failed = a->kind & 1 && a->record->ret < 0 &&
		      a->record->kind == FLEXSC_TRACE_END;
	const void *there = failed ? NULL :
				     trace_part(a->record, a->i, at, size);
	union any any = { 0 };

	if (!there || size > sizeof(any)) {
		print_pointer(text, at);
		return;
	}
	memcpy(&any, there, size);
	print_any(text, which, &any);
}

/* Lists ------------------------------------------------------------------------------ */

static void print_ids(struct text *text, const struct trace_arg *a, uint64_t nr)
{
	uint64_t at = a->record->args[a->i];
	const unsigned char *ids = trace_part(a->record, a->i, at, nr * 4);
	unsigned int id;

	if ((!ids && nr) || !at) {
		print_pointer(text, at);
		return;
	}
	text_add(text, "[");
	for (uint64_t i = 0; i < nr; i++) {
		memcpy(&id, ids + i * sizeof(id), sizeof(id));
		text_add(text, "%s%u", i ? ", " : "", id);
	}
	text_add(text, "]");
}

static void print_processors(struct text *text, const struct trace_arg *a)
{
	uint64_t at = a->record->args[a->i];
	const char *between = "";
	size_t size = 128;
	const unsigned char *set = trace_some(a->record, a->i, at, &size);

	if (!set && (a->record->args[a->i - 1] || !at)) {
		print_pointer(text, at);
		return;
	}
	text_add(text, "[");
	for (size_t i = 0; set && i < 8 * size; i++)
		if (set[i / 8] >> i % 8 & 1) {
			text_add(text, "%s%zu", between, i);
			between = " ";
		}
	text_add(text, "]");
}

/* The @n-th of an array of pointers. Return: whether it is known. */
static bool pointer_at(const struct trace_arg *a, size_t n, uint64_t *pointer)
{
	const void *there = trace_part(
		a->record, a->i, a->record->args[a->i] + n * sizeof(*pointer),
		sizeof(*pointer));

	if (there)
		memcpy(pointer, there, sizeof(*pointer));
	return there;
}

static void print_one(struct text *text, const struct trace_arg *a, uint64_t at)
{
	size_t size = a->call->most_bytes + 1;
	const char *there = trace_some(a->record, a->i, at, &size);
	size_t length = there ? strnlen(there, size) : 0;

	if (!there) {
		print_pointer(text, at);
		return;
	}
	if (length <= a->call->most_bytes) {
		text_quote(text, there, length);
		return;
	}
	text_quote(text, there, a->call->most_bytes);
	text_add(text, "...");
}

static void print_strings(struct text *text, const struct trace_arg *a)
{
	uint64_t pointer;

	if (!pointer_at(a, 0, &pointer)) {
		print_pointer(text, a->record->args[a->i]);
		return;
	}
	text_add(text, "[");
	for (size_t n = 0; pointer_at(a, n, &pointer) && pointer; n++) {
		text_add(text, "%s", n ? ", " : "");
		if (n == MOST_STRINGS) {
			text_add(text, "...");
			break;
		}
		print_one(text, a, pointer);
	}
	text_add(text, "]");
}

static void print_variables(struct text *text, const struct trace_arg *a)
{
	uint64_t pointer = 0;
	size_t n = 0;

	print_pointer(text, a->record->args[a->i]);
	while (pointer_at(a, n, &pointer) && pointer)
		n++;
	if (n || pointer_at(a, 0, &pointer))
		text_add(text,
			 pointer ? " /* %zu vars or more */" :
			 n == 1	 ? " /* %zu var */" :
				   " /* %zu vars */",
			 n);
}

bool trace_print_list(struct text *text, const struct trace_arg *a)
{
	const struct flexsc_trace_record *r = a->record;

	switch (a->kind) {
	case '1':
		print_ids(text, a, r->args[a->i - 1]);
		return true;
	case '3':
		if (r->ret < 0 || !r->args[0])
			print_pointer(text, r->args[a->i]);
		else
			print_ids(text, a, (uint64_t)r->ret);
		return true;
	case '4':
	case '5':
		print_processors(text, a);
		return true;
	case '6':
		print_strings(text, a);
		return true;
	case '7':
		print_variables(text, a);
		return true;
	default:
		return false;
	}
}
