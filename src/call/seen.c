/* SPDX-License-Identifier: MIT */
/*
 * Which memory of a call is recorded, and when: src/call/arguments.tbl says what
 * an argument is. What it means is for who shows it (cli/trace_print.c).
 */
#include "call/seen.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <flexsc/arguments.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>

enum {
	STEP = 256, /* of strings */
	MAX_IOVEC = 64,
	MAX_VALUE = 64, /* of an option */
	MAX_NAME = 16, /* of a thread */
	MAX_CONTROL = 256,
	MAX_POINTERS = 512,
	MAX_STRINGS = 33,
	MAX_IDS = 64,
	MAX_PROCESSORS = 128, /* bytes of them */
};

struct seen {
	struct fx_record record;
	const uint64_t *args;
	int64_t ret;
	uint32_t bytes; /* of each buffer */
	bool end;
};

static size_t least(uint64_t a, uint64_t b)
{
	return (size_t)(a < b ? a : b);
}

static const void *part(struct seen *s, unsigned i, uint64_t address,
			uint64_t size)
{
	size_t had = (size_t)size;
	const void *what = fx_record_part(&s->record, i, address, &had);

	return had == size ? what : NULL;
}

/* As far as @most bytes, with what ends it. */
static void string(struct seen *s, unsigned i, uint64_t at, size_t most)
{
	size_t had, length;
	const char *text;

	for (size_t done = 0; done < most; done += STEP) {
		had = least(most - done, STEP);
		text = fx_record_part(&s->record, i, at + done, &had);
		if (!text)
			return;
		length = strnlen(text, had);
		if (length < had) {
			fx_record_trim(&s->record, text, length + 1);
			return;
		}
		if (had < STEP)
			return;
	}
}

/* Addresses up to NULL. Return: how many are there, without that. */
static size_t pointers(struct seen *s, unsigned i, uint64_t to[], size_t nr)
{
	uint64_t found[STEP / sizeof(uint64_t)];
	size_t done = 0, n;

	while (done < MAX_POINTERS) {
		size_t had = sizeof(found);
		const void *there = fx_record_part(
			&s->record, i, s->args[i] + done * sizeof(*to), &had);

		if (!there)
			break;
		memcpy(found, there, had);
		for (n = 0; n < had / sizeof(*found) && found[n]; n++)
			if (done + n < nr)
				to[done + n] = found[n];
		done += n;
		if (n < sizeof(found) / sizeof(*found)) {
			fx_record_trim(&s->record, there,
				       least(had, (n + 1) * sizeof(*found)));
			break;
		}
	}
	return done;
}

static void strings(struct seen *s, unsigned i)
{
	uint64_t at[MAX_STRINGS];
	size_t nr = least(pointers(s, i, at, MAX_STRINGS), MAX_STRINGS);

	for (size_t n = 0; n < nr; n++)
		string(s, i, at[n], s->bytes + 1);
}

/* @total: bytes that matter, of all together. */
static void vector(struct seen *s, unsigned i, uint64_t address, uint64_t nr,
		   uint64_t total)
{
	const struct iovec *iov;
	struct iovec one;

	nr = least(nr, MAX_IOVEC);
	iov = part(s, i, address, nr * sizeof(*iov));
	for (uint64_t n = 0; iov && n < nr && total; n++) {
		memcpy(&one, &iov[n], sizeof(one));
		one.iov_len = least(one.iov_len, total);
		total -= one.iov_len;
		part(s, i, (uintptr_t)one.iov_base,
		     least(one.iov_len, s->bytes));
	}
}

static void message(struct seen *s, unsigned i, uint64_t total)
{
	const struct msghdr *there = part(s, i, s->args[i], sizeof(*there));
	struct msghdr m;

	if (!there)
		return;
	memcpy(&m, there, sizeof(m));
	part(s, i, (uintptr_t)m.msg_name,
	     least(m.msg_namelen, sizeof(struct sockaddr_storage)));
	vector(s, i, (uintptr_t)m.msg_iov, m.msg_iovlen, total);
	part(s, i, (uintptr_t)m.msg_control,
	     least(m.msg_controllen, MAX_CONTROL));
}

/* What is as long as the next argument points at. */
static void sized(struct seen *s, unsigned i, size_t most)
{
	const socklen_t *there = part(s, i + 1, s->args[i + 1], sizeof(*there));
	socklen_t size;

	if (!there)
		return;
	memcpy(&size, there, sizeof(size));
	part(s, i, s->args[i], least(size, most));
}

static void of_fcntl(struct seen *s, unsigned i)
{
	switch ((int)s->args[i - 1]) {
	case F_GETLK:
	case F_SETLK:
	case F_SETLKW:
	case F_OFD_GETLK:
	case F_OFD_SETLK:
	case F_OFD_SETLKW:
		part(s, i, s->args[i], sizeof(struct flock));
		break;
	default:
		break;
	}
}

static void of_ioctl(struct seen *s, unsigned i)
{
	switch (s->args[i - 1]) {
	case FIONREAD:
	case FIONBIO:
		part(s, i, s->args[i], sizeof(int));
		break;
	case TIOCGWINSZ:
		part(s, i, s->args[i], sizeof(struct winsize));
		break;
	default:
		break;
	}
}

/* Before and after, where the call changes it. */
static bool both(struct seen *s, unsigned i, char kind)
{
	uint64_t nr;

	switch (kind) {
	case 'j':
		nr = least(s->args[i + 1], FLEXSC_TRACE_MAX_BYTES / 8);
		part(s, i, s->args[i], nr * sizeof(struct pollfd));
		return true;
	case 'F':
		part(s, i, s->args[i], least((s->args[0] + 7) / 8, 128));
		return true;
	case 'U':
		part(s, i, s->args[i], sizeof(struct timeval));
		return true;
	case '*':
		part(s, i, s->args[i], sizeof(int64_t));
		return true;
	case 'l':
		part(s, i, s->args[i], sizeof(socklen_t));
		return true;
	case 'C':
		of_fcntl(s, i);
		return true;
	case 'J':
		of_ioctl(s, i);
		return true;
	default:
		return false;
	}
}

/* The size of what is there before the call, or after it. */
static size_t struct_size(char kind, bool end)
{
	unsigned which = (unsigned char)kind;

	return which >= FLEXSC_STRUCT_ID && (which & 1) == end ?
		       flexsc_struct_size[(which - FLEXSC_STRUCT_ID) / 2] :
		       0;
}

/* As many as the argument before says. */
static uint64_t counted(const struct seen *s, unsigned i, size_t most)
{
	return least(s->args[i - 1], most);
}

static void before(struct seen *s, unsigned i, char kind)
{
	uint64_t at = s->args[i], next = i < 5 ? s->args[i + 1] : 0;

	switch (kind) {
	case 's':
	case 'S':
		string(s, i, at, FLEXSC_TRACE_MAX_BYTES);
		break;
	case '_':
		if (s->args[0] == PR_SET_NAME)
			string(s, i, at, MAX_NAME);
		break;
	case '1':
		part(s, i, at, counted(s, i, MAX_IDS) * sizeof(uint32_t));
		break;
	case '4':
		part(s, i, at, counted(s, i, MAX_PROCESSORS));
		break;
	case '6':
		strings(s, i);
		break;
	case '7':
		pointers(s, i, NULL, 0);
		break;
	case 'B':
		part(s, i, at, least(next, s->bytes));
		break;
	case 'V':
		vector(s, i, at, next, UINT64_MAX);
		break;
	case 'M':
		message(s, i, UINT64_MAX);
		break;
	case 'k':
		part(s, i, at,
		     least((uint32_t)next, sizeof(struct sockaddr_storage)));
		break;
	case 'n':
		part(s, i, at, least((uint32_t)next, MAX_VALUE));
		break;
	case 'y':
		part(s, i, at, sizeof(struct epoll_event));
		break;
	case 't':
		part(s, i, at, sizeof(struct timespec));
		break;
	case '2':
		part(s, i, at, 2 * sizeof(struct timespec));
		break;
	case 'z':
		part(s, i, at, sizeof(uint64_t));
		break;
	default:
		part(s, i, at, struct_size(kind, false));
		both(s, i, kind);
	}
}

static void after(struct seen *s, unsigned i, char kind)
{
	uint64_t at = s->args[i], ret = (uint64_t)s->ret;

	if (kind == 'r' && (s->ret >= 0 || s->ret == -EINTR))
		part(s, i, at, sizeof(struct timespec));
	if (s->ret < 0)
		return;
	switch (kind) {
	case 'b':
		part(s, i, at, least(ret, s->bytes));
		break;
	case 'v':
		vector(s, i, at, s->args[i + 1], ret);
		break;
	case 'm':
		message(s, i, ret);
		break;
	case 'K':
		sized(s, i, sizeof(struct sockaddr_storage));
		break;
	case 'N':
		sized(s, i, MAX_VALUE);
		break;
	case 'X':
		part(s, i, at, sizeof(struct stat));
		break;
	case '&':
		part(s, i, at, sizeof(int));
		break;
	case '!':
		part(s, i, at, 2 * sizeof(int));
		break;
	case '_':
		if (s->args[0] == PR_GET_NAME)
			part(s, i, at, MAX_NAME);
		break;
	case '3':
		if (s->args[0])
			part(s, i, at, least(ret, MAX_IDS) * sizeof(uint32_t));
		break;
	case '5':
		/* The C library does not say how many. */
		part(s, i, at,
		     ret ? least(ret, MAX_PROCESSORS) :
			   counted(s, i, MAX_PROCESSORS));
		break;
	case 'Y':
		part(s, i, at,
		     least(ret, MAX_IOVEC) * sizeof(struct epoll_event));
		break;
	default:
		part(s, i, at, struct_size(kind, true));
		/* 'l' is with the one before it. */
		if (kind != 'l')
			both(s, i, kind);
	}
}

static void add_parts(struct seen *s, unsigned nr)
{
	const char *kinds = nr < FX_ARRAY_SIZE(flexsc_arguments) ?
				    flexsc_arguments[nr] :
				    NULL;

	for (unsigned i = 0; kinds && i < 6 && kinds[i]; i++) {
		if (!s->args[i])
			continue;
		if (s->end)
			after(s, i, kinds[i]);
		else
			before(s, i, kinds[i]);
	}
}

static void head(struct seen *s, enum flexsc_trace_kind kind, unsigned nr,
		 int tid, uint64_t id)
{
	struct flexsc_trace_record *r = s->record.head;

	r->kind = (uint16_t)kind;
	r->nr = (uint16_t)nr;
	r->tid = tid;
	r->id = id;
	r->ret = s->ret;
	if (s->args)
		memcpy(r->args, s->args, sizeof(r->args));
}

uint64_t fx_seen_begin(unsigned nr, int tid, uint64_t id,
		       const uint64_t args[6], unsigned results)
{
	struct seen s = { .args = args };
	uint64_t now_ns = fx_now_ns();
	unsigned wants = fx_trace_wants(nr, now_ns);

	if (!wants)
		return 0;
	if (!(wants & FX_WANT_RECORDS) || !fx_record_new(&s.record))
		return now_ns;
	s.bytes = fx_trace_bytes();
	head(&s, FLEXSC_TRACE_BEGIN, nr, tid, id);
	s.record.head->results = results;
	add_parts(&s, nr);
	s.record.head->at_ns = fx_now_ns();
	fx_record_close(&s.record);
	return fx_now_ns();
}

void fx_seen_end(unsigned nr, int tid, uint64_t id, const uint64_t args[6],
		 uint64_t begun_ns, int64_t ret)
{
	struct seen s = { .args = args, .ret = ret, .end = true };
	uint64_t now_ns = fx_now_ns();
	unsigned wants = fx_watched() ? fx_trace_wants(nr, now_ns) : 0;

	/* Whose beginning was timed is counted however long it lasts. */
	if (begun_ns && (wants & FX_WANT_LATENCY || fx_trace_times()))
		fx_trace_latency(nr, now_ns - begun_ns, fx_is_error(ret));
	if (!(wants & FX_WANT_RECORDS) || !fx_record_new(&s.record))
		return;
	s.bytes = fx_trace_bytes();
	head(&s, FLEXSC_TRACE_END, nr, tid, id);
	s.record.head->at_ns = now_ns;
	s.record.head->begun_ns = begun_ns;
	add_parts(&s, nr);
	fx_record_close(&s.record);
}

/* What is no call: a head alone. */
static void note(enum flexsc_trace_kind kind, unsigned nr, unsigned wanted,
		 int tid, uint64_t id, const uint64_t args[6])
{
	struct seen s = { .args = args };
	uint64_t now_ns = fx_now_ns();

	if (!(fx_trace_wants(wanted, now_ns) & FX_WANT_RECORDS) ||
	    !fx_record_new(&s.record))
		return;
	head(&s, kind, nr, tid, id);
	s.record.head->at_ns = now_ns;
	fx_record_close(&s.record);
}

void fx_seen_cancel(unsigned nr, int tid, uint64_t id)
{
	note(FLEXSC_TRACE_CANCEL, nr, nr, tid, id, NULL);
}

void fx_seen_signal(int signal, int tid, const siginfo_t *info)
{
	uint64_t begins[6];

	_Static_assert(sizeof(begins) <= sizeof(*info), "siginfo_t is shorter");
	memcpy(begins, info, sizeof(begins));
	note(FLEXSC_TRACE_SIGNAL, (unsigned)signal, FX_NO_CALL, tid, 0, begins);
}

void fx_seen_exit(unsigned nr, int tid, int status)
{
	const uint64_t args[6] = { (uint64_t)status };

	note(FLEXSC_TRACE_EXIT, nr, FX_NO_CALL, tid, 0, args);
}
