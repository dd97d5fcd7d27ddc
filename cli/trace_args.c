/* SPDX-License-Identifier: MIT */
/* One argument of a recorded call, by its kind; see cli/trace_print.h. */
#include "cli/trace_print.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

static void print_pointer(struct text *text, uint64_t address)
{
	text_add(text, address ? "%#lx" : "NULL", address);
}

static uint64_t value_of(const struct trace_arg *a)
{
	return a->record->args[a->i];
}

static const void *part(const struct trace_arg *a, size_t size)
{
	return trace_part(a->record, a->i, value_of(a), size);
}

#define PART_OR_POINTER(what, text, arg)                        \
	do {                                                    \
		const void *there_ = part((arg), sizeof(what)); \
                                                                \
		if (!there_) {                                  \
			print_pointer((text), value_of(arg));   \
			return;                                 \
		}                                               \
		memcpy(&(what), there_, sizeof(what));          \
	} while (0)

void trace_print_text(struct text *text, const struct trace_arg *a, uint64_t at,
		      size_t most)
{
	char path[FLEXSC_TRACE_MAX_BYTES + 1];
	size_t length = 0, size;
	const char *more;

	while (length < most) {
		size = most - length;
		more = trace_some(a->record, a->i, at + length, &size);
		if (!more)
			break;
		memcpy(path + length, more, size);
		length += size;
		if (memchr(more, '\0', size))
			break;
	}
	if (!length) {
		print_pointer(text, at);
		return;
	}
	path[length] = '\0';
	text_quote(text, path, strlen(path));
	if (strlen(path) == length)
		text_add(text, "...");
}

static void print_stat(struct text *text, const struct trace_arg *a)
{
	struct stat st;

	PART_OR_POINTER(st, text, a);
	text_add(text, "{st_mode=");
	trace_print_file_mode(text, st.st_mode);
	if (S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode))
		text_add(text, ", st_rdev=makedev(%#x, %#x), ...}",
			 major(st.st_rdev), minor(st.st_rdev));
	else
		text_add(text, ", st_size=%ld, ...}", (long)st.st_size);
}

/* Of a sleep that was not interrupted nothing is left, nor written. */
static bool is_idle(const struct trace_arg *a)
{
	return a->kind == 'r' && a->record->ret == 0 &&
	       (a->record->nr == SYS_nanosleep ||
		a->record->nr == SYS_clock_nanosleep);
}

static void print_timespecs(struct text *text, const struct trace_arg *a,
			    unsigned int nr)
{
	const char *there = part(a, nr * sizeof(struct timespec));
	struct timespec ts;

	if (!there || is_idle(a)) {
		print_pointer(text, value_of(a));
		return;
	}
	if (nr > 1)
		text_add(text, "[");
	for (unsigned int i = 0; i < nr; i++) {
		memcpy(&ts, there + i * sizeof(ts), sizeof(ts));
		text_add(text, "%s", i ? ", " : "");
		if (nr > 1 && ts.tv_nsec == UTIME_NOW)
			text_add(text, "UTIME_NOW");
		else if (nr > 1 && ts.tv_nsec == UTIME_OMIT)
			text_add(text, "UTIME_OMIT");
		else
			text_add(text, "{tv_sec=%ld, tv_nsec=%ld}",
				 (long)ts.tv_sec, ts.tv_nsec);
	}
	if (nr > 1)
		text_add(text, "]");
}

static void print_timeval(struct text *text, const struct trace_arg *a)
{
	struct timeval tv;

	PART_OR_POINTER(tv, text, a);
	text_add(text, "{tv_sec=%ld, tv_usec=%ld}", (long)tv.tv_sec,
		 (long)tv.tv_usec);
}

static void print_pollfds(struct text *text, const struct trace_arg *a)
{
	uint64_t nr = a->record->args[a->i + 1];
	const char *there = part(a, nr * sizeof(struct pollfd));
	struct pollfd p;

	if (!there) {
		print_pointer(text, value_of(a));
		return;
	}
	text_add(text, "[");
	for (uint64_t i = 0; i < nr; i++) {
		memcpy(&p, there + i * sizeof(p), sizeof(p));
		text_add(text, "%s{fd=%d", i ? ", " : "", p.fd);
		if (p.fd >= 0) {
			text_add(text, ", events=");
			trace_print_poll_events(text, (unsigned short)p.events);
		}
		text_add(text, "}");
	}
	text_add(text, "]");
}

static void print_fds(struct text *text, const struct trace_arg *a)
{
	uint64_t nr = a->record->args[0];
	const unsigned char *set = part(a, (nr + 7) / 8);
	const char *between = "";

	if (!set || !nr) {
		print_pointer(text, value_of(a));
		return;
	}
	text_add(text, "[");
	for (uint64_t fd = 0; fd < nr; fd++)
		if (set[fd / 8] >> fd % 8 & 1) {
			text_add(text, "%s%d", between, (int)fd);
			between = " ";
		}
	text_add(text, "]");
}

static void print_epoll_event(struct text *text, const void *there)
{
	struct epoll_event e;

	memcpy(&e, there, sizeof(e));
	text_add(text, "{events=");
	trace_print_epoll_events(text, e.events);
	text_add(text, ", data={u32=%u, u64=%lu}}", e.data.u32, e.data.u64);
}

static void print_epoll(struct text *text, const struct trace_arg *a)
{
	bool one = a->kind == 'y';
	int64_t nr = one ? 1 : a->record->ret;
	const char *there;

	if (!one && nr <= 0) {
		if (nr == 0)
			text_add(text, "[]");
		else
			print_pointer(text, value_of(a));
		return;
	}
	there = part(a, (size_t)nr * sizeof(struct epoll_event));
	if (!there) {
		print_pointer(text, value_of(a));
		return;
	}
	text_add(text, "%s", one ? "" : "[");
	for (int64_t i = 0; i < nr; i++) {
		text_add(text, "%s", i ? ", " : "");
		print_epoll_event(
			text, there + i * (int64_t)sizeof(struct epoll_event));
	}
	text_add(text, "%s", one ? "" : "]");
}

static void print_signals(struct text *text, const struct trace_arg *a)
{
	uint64_t set;

	PART_OR_POINTER(set, text, a);
	trace_print_mask(text, set);
}

/* What wait(2) says of a child. */
static void print_status(struct text *text, const struct trace_arg *a)
{
	char name[16];
	int status;

	if (a->record->ret <= 0) {
		print_pointer(text, value_of(a));
		return;
	}
	PART_OR_POINTER(status, text, a);
	if (WIFEXITED(status))
		text_add(text, "[{WIFEXITED(s) && WEXITSTATUS(s) == %d}]",
			 WEXITSTATUS(status));
	else if (WIFSIGNALED(status))
		text_add(text, "[{WIFSIGNALED(s) && WTERMSIG(s) == %s%s}]",
			 trace_signal_name(WTERMSIG(status), name),
			 WCOREDUMP(status) ? " && WCOREDUMP(s)" : "");
	else if (WIFSTOPPED(status))
		text_add(text, "[{WIFSTOPPED(s) && WSTOPSIG(s) == %s}]",
			 trace_signal_name(WSTOPSIG(status), name));
	else
		text_add(text, "[%#x]", (unsigned int)status);
}

static void print_pair(struct text *text, const struct trace_arg *a)
{
	int fd[2];

	PART_OR_POINTER(fd, text, a);
	text_add(text, "[%d, %d]", fd[0], fd[1]);
}

static void print_offset(struct text *text, const struct trace_arg *a)
{
	const struct flexsc_trace_record *begin = a->call->begin;
	uint64_t at = value_of(a);
	const int64_t *before =
		begin ? trace_part(begin, a->i, at, sizeof(*before)) : NULL;
	const int64_t *after = trace_part(a->record, a->i, at, sizeof(*after));
	int64_t from, to;

	if (!before && !after) {
		print_pointer(text, at);
		return;
	}
	memcpy(&from, before ? before : after, sizeof(from));
	memcpy(&to, after ? after : before, sizeof(to));
	text_add(text, from == to ? "[%ld]" : "[%ld] => [%ld]", from, to);
}

static void print_lock(struct text *text, const struct trace_arg *a)
{
	static const struct named kinds[] = { NAMED(F_RDLCK), NAMED(F_WRLCK),
					      NAMED(F_UNLCK) };
	static const struct named whences[] = { NAMED(SEEK_SET),
						NAMED(SEEK_CUR),
						NAMED(SEEK_END) };
	struct flock lock;

	PART_OR_POINTER(lock, text, a);
	text_add(text, "{l_type=");
	text_one(text, (uint64_t)lock.l_type, kinds, NR_NAMED(kinds), NULL);
	text_add(text, ", l_whence=");
	text_one(text, (uint64_t)lock.l_whence, whences, NR_NAMED(whences),
		 NULL);
	text_add(text, ", l_start=%ld, l_len=%ld", (long)lock.l_start,
		 (long)lock.l_len);
	if (a->record->args[1] == F_GETLK || a->record->args[1] == F_OFD_GETLK)
		text_add(text, ", l_pid=%d", (int)lock.l_pid);
	text_add(text, "}");
}

static void print_of_fcntl(struct text *text, const struct trace_arg *a)
{
	int value = (int)value_of(a);

	switch ((int)a->record->args[1]) {
	case F_GETLK:
	case F_SETLK:
	case F_SETLKW:
	case F_OFD_GETLK:
	case F_OFD_SETLK:
	case F_OFD_SETLKW:
		print_lock(text, a);
		break;
	case F_SETFL:
		trace_print_open_flags(text, value);
		break;
	case F_SETFD:
		text_add(text, value == FD_CLOEXEC ? "FD_CLOEXEC" : "%#x",
			 (unsigned int)value);
		break;
	default:
		text_add(text, "%d", value);
	}
}

static void print_of_ioctl(struct text *text, const struct trace_arg *a)
{
	struct winsize size;
	int value;

	switch (a->record->args[1]) {
	case FIONBIO:
	case FIONREAD:
		PART_OR_POINTER(value, text, a);
		text_add(text, "[%d]", value);
		break;
	case TIOCGWINSZ:
		PART_OR_POINTER(size, text, a);
		text_add(text,
			 "{ws_row=%d, ws_col=%d, ws_xpixel=%d, ws_ypixel=%d}",
			 size.ws_row, size.ws_col, size.ws_xpixel,
			 size.ws_ypixel);
		break;
	default:
		print_pointer(text, value_of(a));
	}
}

/* What points at something. */
static void print_pointed(struct text *text, const struct trace_arg *a)
{
	switch (a->kind) {
	case 's':
	case 'S':
		trace_print_text(text, a, value_of(a), FLEXSC_TRACE_MAX_BYTES);
		break;
	case 'X':
		print_stat(text, a);
		break;
	case 't':
	case 'r':
		print_timespecs(text, a, 1);
		break;
	case '2':
		print_timespecs(text, a, 2);
		break;
	case 'U':
		print_timeval(text, a);
		break;
	case 'j':
		print_pollfds(text, a);
		break;
	case 'F':
		print_fds(text, a);
		break;
	case 'y':
	case 'Y':
		print_epoll(text, a);
		break;
	case 'z':
		print_signals(text, a);
		break;
	case '&':
		print_status(text, a);
		break;
	case '!':
		print_pair(text, a);
		break;
	case '*':
		print_offset(text, a);
		break;
	default:
		trace_print_socket(text, a);
	}
}

/* Return: false: it is no mere number. */
static bool print_number(struct text *text, const struct trace_arg *a,
			 uint64_t value)
{
	char name[16];

	switch (a->kind) {
	case 'd':
	case 'i':
		/* lseek and its like have 64 bits. */
		if ((int64_t)value == (int32_t)value ||
		    value >> 32 == UINT32_MAX || a->kind == 'd')
			text_add(text, "%d", (int)value);
		else
			text_add(text, "%ld", (long)value);
		return true;
	case 'A':
		text_add(text, (int)value == AT_FDCWD ? "AT_FDCWD" : "%d",
			 (int)value);
		return true;
	case 'u':
		text_add(text, "%lu", value);
		return true;
	case 'x':
		text_add(text, value ? "%#lx" : "0", value);
		return true;
	case '~':
		text_add(text, "%d", (int)value);
		return true;
	case '0':
		if (a->record->nr == SYS_mknod || a->record->nr == SYS_mknodat)
			trace_print_file_mode(text, (unsigned int)value);
		else
			trace_print_mode(text, (unsigned int)value);
		return true;
	case 'o':
		trace_print_mode(text, (unsigned int)value);
		return true;
	case 'g':
		text_add(text, "%s",
			 value ? trace_signal_name((int)value, name) : "0");
		return true;
	case 'p':
		print_pointer(text, value);
		return true;
	default:
		return false;
	}
}

void trace_print_arg(struct text *text, const struct trace_arg *a)
{
	uint64_t value = value_of(a);

	if (print_number(text, a, value) || trace_print_list(text, a))
		return;
	if ((unsigned char)a->kind >= 0x80) {
		trace_print_struct(text, a);
		return;
	}
	switch (a->kind) {
	case 'C':
		print_of_fcntl(text, a);
		break;
	case 'J':
		print_of_ioctl(text, a);
		break;
	case '|':
	case '-':
	case '_':
		trace_print_by_call(text, a);
		break;
	default:
		if (!trace_print_flags(text, a->kind, value, a->record->nr,
				       a->i ? a->record->args[a->i - 1] : 0))
			print_pointed(text, a);
	}
}
