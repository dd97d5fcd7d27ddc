/* SPDX-License-Identifier: MIT */
/* Buffers, addresses and messages; see cli/trace_print.h. */
#include "cli/trace_print.h"

#include <arpa/inet.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>

static void print_pointer(struct text *text, uint64_t address)
{
	text_add(text, address ? "%#lx" : "NULL", address);
}

void trace_print_bytes(struct text *text, const struct trace_arg *a,
		       uint64_t address, uint64_t size)
{
	size_t had = size < a->call->most_bytes ? (size_t)size :
						  a->call->most_bytes;
	const void *there;

	if (!address || !size) {
		if (address)
			text_add(text, "\"\"");
		else
			text_add(text, "NULL");
		return;
	}
	there = trace_some(a->record, a->i, address, &had);
	if (!there && a->call->most_bytes) {
		print_pointer(text, address);
		return;
	}
	if (a->record->nr == SYS_getrandom)
		text_quote_hex(text, there, there ? had : 0);
	else
		text_quote(text, there, there ? had : 0);
	if (!there || had < size)
		text_add(text, "...");
}

void trace_print_vector(struct text *text, const struct trace_arg *a,
			uint64_t address, uint64_t nr, uint64_t total)
{
	const char *there =
		trace_part(a->record, a->i, address, nr * sizeof(struct iovec));
	struct iovec one;

	if (!there || !nr) {
		if (nr)
			print_pointer(text, address);
		else
			text_add(text, address ? "[]" : "NULL");
		return;
	}
	text_add(text, "[");
	for (uint64_t i = 0; i < nr; i++) {
		uint64_t size;

		memcpy(&one, there + i * sizeof(one), sizeof(one));
		size = one.iov_len < total ? one.iov_len : total;
		total -= size;
		text_add(text, "%s{iov_base=", i ? ", " : "");
		trace_print_bytes(text, a, (uintptr_t)one.iov_base, size);
		text_add(text, ", iov_len=%zu}", one.iov_len);
	}
	text_add(text, "]");
}

static void print_inet(struct text *text, const void *address, size_t size)
{
	char words[INET6_ADDRSTRLEN] = "?";
	struct sockaddr_in6 in6;
	struct sockaddr_in in;

	if (size == sizeof(in)) {
		memcpy(&in, address, sizeof(in));
		inet_ntop(AF_INET, &in.sin_addr, words, sizeof(words));
		text_add(text,
			 "{sa_family=AF_INET, sin_port=htons(%u), "
			 "sin_addr=inet_addr(\"%s\")}",
			 ntohs(in.sin_port), words);
		return;
	}
	memcpy(&in6, address, sizeof(in6));
	inet_ntop(AF_INET6, &in6.sin6_addr, words, sizeof(words));
	text_add(text,
		 "{sa_family=AF_INET6, sin6_port=htons(%u), "
		 "sin6_flowinfo=htonl(%u), inet_pton(AF_INET6, \"%s\", "
		 "&sin6_addr), sin6_scope_id=%u}",
		 ntohs(in6.sin6_port), ntohl(in6.sin6_flowinfo), words,
		 in6.sin6_scope_id);
}

static void print_unix(struct text *text, const char *path, size_t size)
{
	text_add(text, "{sa_family=AF_UNIX");
	if (size) {
		bool abstract = !path[0];
		size_t length = abstract ? size - 1 : strnlen(path, size);

		text_add(text, ", sun_path=%s", abstract ? "@" : "");
		text_quote(text, path + abstract, length);
	}
	text_add(text, "}");
}

void trace_print_address(struct text *text, const void *address, size_t size)
{
	sa_family_t family;

	memcpy(&family, address, sizeof(family));
	if (family == AF_INET && size >= sizeof(struct sockaddr_in))
		print_inet(text, address, sizeof(struct sockaddr_in));
	else if (family == AF_INET6 && size >= sizeof(struct sockaddr_in6))
		print_inet(text, address, sizeof(struct sockaddr_in6));
	else if (family == AF_UNIX)
		print_unix(text, (const char *)address + sizeof(family),
			   size - sizeof(family));
	else {
		text_add(text, "{sa_family=%s",
			 family == AF_UNSPEC ? "AF_UNSPEC" : "");
		if (family != AF_UNSPEC)
			text_add(text, "%#x", family);
		text_add(text, ", sa_data=");
		text_quote(text, (const char *)address + sizeof(family),
			   size - sizeof(family));
		text_add(text, "}");
	}
}

static void print_name(struct text *text, const struct trace_arg *a,
		       uint64_t address, size_t size)
{
	const void *there;

	if (size > sizeof(struct sockaddr_storage))
		size = sizeof(struct sockaddr_storage);
	there = size >= sizeof(sa_family_t) ?
			trace_part(a->record, a->i, address, size) :
			NULL;
	if (there)
		trace_print_address(text, there, size);
	else
		print_pointer(text, address);
}

/* Of the argument behind this one: what it points at; -1: not known. */
static int64_t length_of(const struct flexsc_trace_record *record,
			 unsigned int i)
{
	socklen_t size;
	const void *there =
		record ? trace_part(record, i, record->args[i], sizeof(size)) :
			 NULL;

	if (!there)
		return -1;
	memcpy(&size, there, sizeof(size));
	return size;
}

static void print_length(struct text *text, const struct trace_arg *a)
{
	int64_t before = length_of(a->call->begin, a->i);
	int64_t after = a->record->ret < 0 ? -1 : length_of(a->call->end, a->i);

	if (before < 0 && after < 0)
		print_pointer(text, a->record->args[a->i]);
	else if (before < 0 || after < 0 || before == after)
		text_add(text, "[%ld]", after < 0 ? before : after);
	else
		text_add(text, "[%ld => %ld]", before, after);
}

void trace_print_message(struct text *text, const struct trace_arg *a)
{
	bool out = a->kind == 'm';
	uint64_t total = out ? (uint64_t)a->record->ret : UINT64_MAX;
	const void *there = out && a->record->ret < 0 ?
				    NULL :
				    trace_part(a->record, a->i,
					       a->record->args[a->i],
					       sizeof(struct msghdr));
	struct msghdr m;

	if (!there) {
		print_pointer(text, a->record->args[a->i]);
		return;
	}
	memcpy(&m, there, sizeof(m));
	text_add(text, "{msg_name=");
	print_name(text, a, (uintptr_t)m.msg_name, m.msg_namelen);
	text_add(text, ", msg_namelen=%u, msg_iov=", m.msg_namelen);
	trace_print_vector(text, a, (uintptr_t)m.msg_iov, m.msg_iovlen, total);
	text_add(text, ", msg_iovlen=%zu", m.msg_iovlen);
	if (m.msg_controllen)
		text_add(text, ", msg_control=%p", m.msg_control);
	text_add(text, ", msg_controllen=%zu, msg_flags=", m.msg_controllen);
	trace_print_flags(text, 'G', (uint64_t)m.msg_flags, 0, 0);
	text_add(text, "}");
}

/* The value of an option: most of them are an int. */
static void print_value(struct text *text, const struct trace_arg *a,
			int64_t size)
{
	uint64_t at = a->record->args[a->i];
	size_t had = size > 0 ? (size_t)size : 0;
	const void *there = had ? trace_some(a->record, a->i, at, &had) : NULL;
	int value;

	if (!there) {
		print_pointer(text, at);
	} else if (had == sizeof(value)) {
		memcpy(&value, there, sizeof(value));
		text_add(text, "[%d]", value);
	} else {
		text_quote(text, there, had);
	}
}

void trace_print_socket(struct text *text, const struct trace_arg *a)
{
	const struct flexsc_trace_record *r = a->record;
	uint64_t at = r->args[a->i], next = a->i < 5 ? r->args[a->i + 1] : 0;

	switch (a->kind) {
	case 'B':
		trace_print_bytes(text, a, at, next);
		break;
	case 'b':
		if (r->ret < 0)
			print_pointer(text, at);
		else /* with what ends it */
			trace_print_bytes(text, a, at,
					  (uint64_t)r->ret -
						  (r->nr == SYS_getcwd));
		break;
	case 'V':
		trace_print_vector(text, a, at, next, UINT64_MAX);
		break;
	case 'v':
		if (r->ret < 0)
			print_pointer(text, at);
		else
			trace_print_vector(text, a, at, next, (uint64_t)r->ret);
		break;
	case 'M':
	case 'm':
		trace_print_message(text, a);
		break;
	case 'k':
		print_name(text, a, at, (uint32_t)next);
		break;
	case 'K':
		print_name(text, a, at,
			   (size_t)(r->ret < 0 || length_of(r, a->i + 1) < 0 ?
					    0 :
					    length_of(r, a->i + 1)));
		break;
	case 'l':
		print_length(text, a);
		break;
	case 'n':
		print_value(text, a, (int32_t)next);
		break;
	case 'N':
		print_value(text, a, r->ret < 0 ? 0 : length_of(r, a->i + 1));
		break;
	default:
		print_pointer(text, at);
	}
}
