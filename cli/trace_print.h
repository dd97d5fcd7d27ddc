/* SPDX-License-Identifier: MIT */
/*
 * A recorded call as strace(1) writes it: name, arguments, result. What the
 * arguments are, src/call/arguments.tbl says; what they point at was recorded.
 */
#ifndef CLI_TRACE_PRINT_H
#define CLI_TRACE_PRINT_H

#include "cli/text.h"

#include <signal.h>

#include <flexsc/trace.h>

/* Before and after the call; one of them may be NULL. */
struct trace_call {
	const struct flexsc_trace_record *begin, *end;
	size_t most_bytes; /* of buffers: -s */
};

/* Name, and the arguments that the call does not change. Return: how many. */
unsigned int trace_print_begin(struct text *text,
			       const struct trace_call *call);

/* The rest of them, and the parenthesis. */
void trace_print_rest(struct text *text, const struct trace_call *call,
		      unsigned int from);

/* "3", "-1 EBADF (Bad file descriptor)", "0 (Timeout)". */
void trace_print_result(struct text *text, const struct trace_call *call);

/* cli/trace_signal.c: "--- SIGUSR1 {si_signo=SIGUSR1, ...} ---" */
void trace_print_signal(struct text *text,
			const struct flexsc_trace_record *record);
void trace_print_siginfo(struct text *text, const siginfo_t *info);

/* "read", or "syscall_0x1ff". */
void trace_print_name(struct text *text, unsigned int nr);

/* cli/trace_args.c: one argument, by its kind. */
struct trace_arg {
	const struct trace_call *call;
	const struct flexsc_trace_record *record; /* whose parts are seen */
	unsigned int i;
	char kind;
};
void trace_print_arg(struct text *text, const struct trace_arg *arg);
/* Text that ends with 0, or with what was recorded of it. */
void trace_print_text(struct text *text, const struct trace_arg *arg,
		      uint64_t address, size_t most);

/* What was at an address, of this argument; NULL: not all of it is known. */
const void *trace_part(const struct flexsc_trace_record *record, unsigned int i,
		       uint64_t address, size_t size);
/* The same, as much as there is. */
const void *trace_some(const struct flexsc_trace_record *record, unsigned int i,
		       uint64_t address, size_t *size);

/* cli/trace_socket.c */
void trace_print_address(struct text *text, const void *address, size_t size);
void trace_print_message(struct text *text, const struct trace_arg *arg);
void trace_print_socket(struct text *text, const struct trace_arg *arg);
void trace_print_bytes(struct text *text, const struct trace_arg *arg,
		       uint64_t address, uint64_t size);
void trace_print_vector(struct text *text, const struct trace_arg *arg,
			uint64_t address, uint64_t nr, uint64_t total);

/* cli/trace_struct.c: structures; lists, false: it is none */
void trace_print_struct(struct text *text, const struct trace_arg *arg);
bool trace_print_list(struct text *text, const struct trace_arg *arg);

/* cli/trace_names.c: numbers whose names depend on the call; kinds | - _ */
void trace_print_by_call(struct text *text, const struct trace_arg *arg);
void trace_print_statx_mask(struct text *text, unsigned int mask);
/* How many arguments prctl has, with its option. */
unsigned int trace_prctl_arguments(uint64_t option);
/* " (SCHED_OTHER)": what a result means */
void trace_print_meaning(struct text *text,
			 const struct flexsc_trace_record *end);

/* cli/trace_flags.c: kinds that are a number with names. */
bool trace_print_flags(struct text *text, char kind, uint64_t value,
		       unsigned int nr, uint64_t before);
void trace_print_open_flags(struct text *text, int flags);
void trace_print_mode(struct text *text, unsigned int mode);
void trace_print_file_mode(struct text *text, unsigned int mode);
void trace_print_mask(struct text *text, uint64_t signals);
void trace_print_poll_events(struct text *text, unsigned int events);
void trace_print_epoll_events(struct text *text, unsigned int events);
const char *trace_signal_name(int signal, char number[16]);

#endif /* CLI_TRACE_PRINT_H */
