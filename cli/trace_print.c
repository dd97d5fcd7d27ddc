/* SPDX-License-Identifier: MIT */
/* A recorded call as strace(1) writes it; see cli/trace_print.h. */
#include "cli/trace_print.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <flexsc.h>
#include <flexsc/arguments.h>

/* What was recorded ------------------------------------------------------------ */

const void *trace_some(const struct flexsc_trace_record *record, unsigned int i,
		       uint64_t address, size_t *size)
{
	const char *at = (const char *)(record + 1);
	const char *end = (const char *)record + record->size;

	while (address && at + sizeof(struct flexsc_trace_part) <= end) {
		struct flexsc_trace_part part;
		const char *bytes = at + sizeof(part);
		uint64_t off;

		memcpy(&part, at, sizeof(part));
		if (part.size > (size_t)(end - bytes))
			break;
		off = address - part.address;
		if (part.argument == i && address >= part.address &&
		    off < part.size) {
			if (*size > part.size - off)
				*size = part.size - off;
			return bytes + off;
		}
		at = bytes + ((part.size + 7) & ~7u);
	}
	return NULL;
}

const void *trace_part(const struct flexsc_trace_record *record, unsigned int i,
		       uint64_t address, size_t size)
{
	size_t had = size;
	const void *there = trace_some(record, i, address, &had);

	/* Some kinds are recorded twice: the name of a message and itself. */
	return had == size ? there : NULL;
}

/* Name and arguments ------------------------------------------------------------ */

static const struct flexsc_trace_record *either(const struct trace_call *call)
{
	return call->begin ? call->begin : call->end;
}

static const char *kinds_of(const struct flexsc_trace_record *r)
{
	const char *kinds =
		r->nr < FLEXSC_TRACE_CALLS ? flexsc_arguments[r->nr] : NULL;

	return kinds ? kinds : "xxxxxx";
}

/* Is it the call that makes it what it is? */
static bool comes_back(const struct flexsc_trace_record *r, char kind)
{
	if ((unsigned char)kind >= 0x80)
		return kind & 1;
	if (kind == '_')
		return r->args[0] == PR_GET_NAME;
	return strchr("bvmKlNXr&!Y*UFJ35", kind) != NULL;
}

/* What the call takes no notice of, with what it is given else. */
static bool is_idle(const struct flexsc_trace_record *r, unsigned int i)
{
	switch (r->nr) {
	case SYS_prctl:
		return i >= trace_prctl_arguments(r->args[0]);
	case SYS_mremap:
		return i == 4 && !(r->args[3] & (MREMAP_FIXED | 4));
	case SYS_mknod:
	case SYS_mknodat:
		return i == (r->nr == SYS_mknod ? 2 : 3) &&
		       !S_ISCHR(r->args[i - 1]) && !S_ISBLK(r->args[i - 1]);
	case SYS_membarrier:
		return i == 2 && !r->args[1];
	case SYS_mq_open:
		return i == 3 && !(r->args[1] & O_CREAT);
	case SYS_preadv:
	case SYS_pwritev:
	case SYS_preadv2:
	case SYS_pwritev2:
		return i == 4; /* the position is one number here */
	default:
		return false;
	}
}

/* The mode is there only if something is created. */
static bool is_shown(const struct flexsc_trace_record *r, const char *kinds,
		     unsigned int i)
{
	if (kinds[i] == 'o')
		return r->args[i - 1] & O_CREAT ||
		       (r->args[i - 1] & O_TMPFILE) == O_TMPFILE;
	if (kinds[i] == 'C')
		return r->args[i - 1] != F_GETFL && r->args[i - 1] != F_GETFD &&
		       r->args[i - 1] != F_GETOWN &&
		       r->args[i - 1] != F_GETPIPE_SZ &&
		       r->args[i - 1] != F_GET_SEALS;
	return !is_idle(r, i);
}

/* Protocols have names of families whose addresses are of the Internet. */
static bool print_protocol(struct text *text,
			   const struct flexsc_trace_record *r)
{
	static const struct named protocols[] = {
		NAMED(IPPROTO_IP),  NAMED(IPPROTO_ICMP),   NAMED(IPPROTO_TCP),
		NAMED(IPPROTO_UDP), NAMED(IPPROTO_ICMPV6), NAMED(IPPROTO_SCTP),
		NAMED(IPPROTO_RAW),
	};

	if (r->nr != SYS_socket ||
	    (r->args[0] != AF_INET && r->args[0] != AF_INET6))
		return false;
	text_one(text, r->args[2], protocols, NR_NAMED(protocols),
		 "IPPROTO_???");
	return true;
}

static void print_arg(struct text *text, const struct trace_call *call,
		      const struct flexsc_trace_record *record, unsigned int i)
{
	struct trace_arg arg = { .call = call,
				 .record = record,
				 .i = i,
				 .kind = kinds_of(record)[i] };

	if (!is_shown(record, kinds_of(record), i))
		return;
	text_add(text, "%s", i ? ", " : "");
	if (record->results >> i & 1 && call->end)
		arg.record = call->end;
	if (record->results >> i & 1 && !call->end)
		text_add(text, "<result>");
	else if (i != 2 || !print_protocol(text, record))
		trace_print_arg(text, &arg);
}

void trace_print_name(struct text *text, unsigned int nr)
{
	const char *name = flexsc_call_name(nr);

	if (name)
		text_add(text, "%s", name);
	else
		text_add(text, "syscall_%#x", nr);
}

unsigned int trace_print_begin(struct text *text, const struct trace_call *call)
{
	const struct flexsc_trace_record *r = either(call);
	const char *kinds = kinds_of(r);
	unsigned int i;

	trace_print_name(text, r->nr);
	text_add(text, "(");
	for (i = 0; i < 6 && kinds[i]; i++) {
		/* What select changes is what it was asked for, too. */
		if (comes_back(r, kinds[i]) && kinds[i] != 'F' &&
		    kinds[i] != 'U')
			break;
		print_arg(text, call, r, i);
	}
	if (i && i < 6 && kinds[i])
		text_add(text, ", ");
	return i;
}

void trace_print_rest(struct text *text, const struct trace_call *call,
		      unsigned int from)
{
	const struct flexsc_trace_record *end = call->end;
	const char *kinds = kinds_of(either(call));
	struct text one = { 0 };

	for (unsigned int i = from; i < 6 && kinds[i]; i++) {
		const struct flexsc_trace_record *r =
			comes_back(end, kinds[i]) || !call->begin ? end :
								    call->begin;

		text_clear(&one);
		print_arg(&one, call, r, i);
		/* The comma before the first of them is written already. */
		text_add(text, "%s",
			 one.length ? one.chars + (i == from && i ? 2 : 0) :
				      "");
	}
	text_add(text, ")");
	text_free(&one);
}

/* The result ---------------------------------------------------------------------- */

static void print_error(struct text *text, int error)
{
	const char *name = strerrorname_np(error);

	if (name)
		text_add(text, "-1 %s (%s)", name, strerror(error));
	else
		text_add(text, "-1 (errno %d)", error);
}

/* [{fd=3, revents=POLLIN}] */
static void print_polled(struct text *text,
			 const struct flexsc_trace_record *end)
{
	const char *there = trace_part(end, 0, end->args[0],
				       end->args[1] * sizeof(struct pollfd));
	const char *between = "";
	struct pollfd p;

	if (!there)
		return;
	text_add(text, " ([");
	for (uint64_t i = 0; i < end->args[1]; i++) {
		memcpy(&p, there + i * sizeof(p), sizeof(p));
		if (!p.revents)
			continue;
		text_add(text, "%s{fd=%d, revents=", between, p.fd);
		trace_print_poll_events(text, (unsigned short)p.revents);
		text_add(text, "}");
		between = ", ";
	}
	text_add(text, "])");
}

/* (in [3], left {tv_sec=0, tv_usec=5}) */
static void print_selected(struct text *text,
			   const struct flexsc_trace_record *end)
{
	static const char *const names[] = { "in", "out", "except" };
	const char *between = " (";
	struct trace_call call = { .end = end };
	struct trace_arg arg = { .call = &call, .record = end, .kind = 'F' };
	size_t size = (end->args[0] + 7) / 8;

	for (arg.i = 1; arg.i <= 3; arg.i++) {
		const unsigned char *set =
			trace_part(end, arg.i, end->args[arg.i], size);
		bool any = false;

		for (size_t n = 0; set && n < size; n++)
			any |= set[n];
		if (!any)
			continue;
		text_add(text, "%s%s ", between, names[arg.i - 1]);
		trace_print_arg(text, &arg);
		between = ", ";
	}
	arg.kind = 'U';
	if (end->nr == SYS_select && end->args[4] &&
	    trace_part(end, 4, end->args[4], 16)) {
		text_add(text, "%sleft ", between);
		trace_print_arg(text, &arg);
		between = ", ";
	}
	if (*between == ',')
		text_add(text, ")");
}

static void print_flags_of(struct text *text,
			   const struct flexsc_trace_record *end)
{
	text_add(text, end->ret ? "%#lx" : "%ld", end->ret);
	if (end->args[1] == F_GETFL) {
		text_add(text, " (flags ");
		trace_print_open_flags(text, (int)end->ret);
		text_add(text, ")");
	} else if (end->ret & FD_CLOEXEC) {
		text_add(text, " (flags FD_CLOEXEC)");
	}
}

static bool times_out(unsigned int nr)
{
	return nr == SYS_poll || nr == SYS_ppoll || nr == SYS_select ||
	       nr == SYS_pselect6;
}

void trace_print_result(struct text *text, const struct trace_call *call)
{
	const struct flexsc_trace_record *end = call->end;

	if (end->ret < 0 && end->ret >= -4095) {
		print_error(text, (int)-end->ret);
		return;
	}
	switch (end->nr) {
	case SYS_mmap:
	case SYS_brk:
	case SYS_mremap:
	case SYS_shmat:
		text_add(text, "%#lx", end->ret);
		return;
	case SYS_umask:
		trace_print_mode(text, (unsigned int)end->ret);
		return;
	case SYS_fcntl:
		if (end->args[1] == F_GETFL || end->args[1] == F_GETFD) {
			print_flags_of(text, end);
			return;
		}
		break;
	default:
		break;
	}
	text_add(text, "%ld", end->ret);
	trace_print_meaning(text, end);
	if (!times_out(end->nr))
		return;
	if (end->ret == 0)
		text_add(text, " (Timeout)");
	else if (end->nr == SYS_poll || end->nr == SYS_ppoll)
		print_polled(text, end);
	else
		print_selected(text, end);
}
