/* SPDX-License-Identifier: MIT */
/*
 * Sets of calls by name. What takes a path or a descriptor is known from its
 * arguments (src/call/arguments.tbl); the rest is listed.
 */
#include "cli/trace_filter.h"

#include "cli/trace_print.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <flexsc.h>
#include <flexsc/arguments.h>

/* Names with blanks around. */
static const char network[] =
	" socket connect accept accept4 sendto recvfrom sendmsg recvmsg shutdown "
	"bind listen getsockname getpeername socketpair setsockopt getsockopt "
	"recvmmsg sendmmsg ";
static const char process[] =
	" fork vfork clone clone3 execve execveat exit exit_group wait4 waitid kill "
	"tkill tgkill rt_sigqueueinfo rt_tgsigqueueinfo pidfd_open "
	"pidfd_send_signal ";
static const char memory[] =
	" brk mmap munmap mprotect mremap msync mincore madvise mlock munlock mlockall "
	"munlockall mlock2 mbind set_mempolicy get_mempolicy pkey_mprotect "
	"process_madvise shmat shmdt remap_file_pages ";
static const char signals[] =
	" rt_sigaction rt_sigprocmask rt_sigreturn rt_sigpending rt_sigtimedwait "
	"rt_sigqueueinfo rt_sigsuspend rt_tgsigqueueinfo sigaltstack pause kill "
	"tkill tgkill signalfd signalfd4 pidfd_send_signal ";
static const char ipc[] =
	" shmget shmat shmctl shmdt semget semop semctl semtimedop msgget msgsnd "
	"msgrcv msgctl ";
static const char desc[] =
	" epoll_create epoll_create1 eventfd eventfd2 select pselect6 poll ppoll "
	"memfd_create mmap pipe pipe2 ";

static bool listed(const char *list, const char *name)
{
	char word[64];

	snprintf(word, sizeof(word), " %s ", name);
	return strstr(list, word);
}

static bool takes(unsigned int nr, const char *kinds)
{
	return flexsc_arguments[nr] && strpbrk(flexsc_arguments[nr], kinds);
}

/* Return: -1: there is no such set. */
static int in_set(const char *set, unsigned int nr, const char *name)
{
	if (strcmp(set, "all") == 0)
		return 1;
	if (strcmp(set, "none") == 0)
		return 0;
	if (strcmp(set, "file") == 0)
		return takes(nr, "s") ||
		       listed(" execve execveat getcwd ", name);
	if (strcmp(set, "desc") == 0)
		return takes(nr, "dA") || listed(desc, name);
	if (strcmp(set, "network") == 0 || strcmp(set, "net") == 0)
		return listed(network, name);
	if (strcmp(set, "process") == 0)
		return listed(process, name);
	if (strcmp(set, "memory") == 0)
		return listed(memory, name);
	if (strcmp(set, "signal") == 0)
		return listed(signals, name);
	if (strcmp(set, "ipc") == 0)
		return listed(ipc, name);
	return -1;
}

/* By one word of the list; false: it means nothing. */
static bool add(uint64_t *calls, const char *word)
{
	bool optional = *word == '?', known = optional;

	word += optional;
	for (unsigned int nr = 0; nr < FLEXSC_TRACE_CALLS; nr++) {
		const char *name = flexsc_call_name(nr);
		int in = 0;

		if (!name)
			continue;
		if (strcmp(name, word) == 0)
			in = 1;
		else if (*word == '%')
			in = in_set(word + 1, nr, name);
		else
			in = in_set(word, nr, name);
		known |= in > 0 || (in == 0 && strcmp(word, "none") == 0);
		if (in > 0)
			calls[nr / 64] |= 1ull << nr % 64;
	}
	return known;
}

/* SIGINT or INT, or a set. */
static bool add_signal(uint64_t *signals, const char *word)
{
	char name[16];
	bool known = strcmp(word, "none") == 0;

	for (int signal = 1; signal <= 64; signal++) {
		trace_signal_name(signal, name);
		if (strcmp(word, "all") && strcasecmp(word, name) &&
		    strcasecmp(word, name + strlen("SIG")))
			continue;
		*signals |= 1ull << (signal - 1);
		known = true;
	}
	return known;
}

/* Words with commas between, after ! all others. */
static bool parse_list(uint64_t *bits, unsigned int nr_words, const char *list,
		       bool (*add_one)(uint64_t *, const char *),
		       char wrong[64])
{
	bool negated = *list == '!', understood = true;
	char *copy = strdup(list + negated), *rest = copy, *word;

	memset(bits, 0, nr_words * sizeof(*bits));
	while (copy && understood && (word = strsep(&rest, ","))) {
		understood = *word && add_one(bits, word);
		if (!understood)
			snprintf(wrong, 64, "%s", word);
	}
	free(copy);
	for (unsigned int i = 0; negated && i < nr_words; i++)
		bits[i] = ~bits[i];
	return understood;
}

static bool parse_calls(struct trace_filter *filter, const char *list,
			char wrong[64])
{
	return parse_list(filter->calls, FLEXSC_TRACE_CALLS / 64, list, add,
			  wrong);
}

void trace_filter_all(struct trace_filter *filter)
{
	memset(filter->calls, 0xff, sizeof(filter->calls));
	filter->signals = UINT64_MAX;
	filter->failed = filter->successful = true;
}

static bool is_key(const char *expression, size_t length, const char *key)
{
	return strlen(key) == length && strncmp(expression, key, length) == 0;
}

bool trace_filter_parse(struct trace_filter *filter, const char *expression,
			char wrong[64])
{
	const char *value = strchr(expression, '=');
	size_t length = value ? (size_t)(value - expression) : 0;

	if (!value)
		return parse_calls(filter, expression, wrong);
	value++;
	if (is_key(expression, length, "trace") ||
	    is_key(expression, length, "t"))
		return parse_calls(filter, value, wrong);
	if (is_key(expression, length, "signal") ||
	    is_key(expression, length, "signals") ||
	    is_key(expression, length, "s"))
		return parse_list(&filter->signals, 1, value, add_signal,
				  wrong);
	if (is_key(expression, length, "status")) {
		filter->successful = strstr(value, "successful");
		filter->failed = strstr(value, "failed");
		if (filter->successful || filter->failed)
			return true;
	}
	snprintf(wrong, 64, "%s", expression);
	return false;
}
