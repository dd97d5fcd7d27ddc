/* SPDX-License-Identifier: MIT */
/* What came with a signal, as strace(1) writes it; see cli/trace_print.h. */
#include "cli/trace_print.h"

#include <signal.h>
#include <string.h>

static const struct named codes[] = {
	NAMED(SI_USER),	 NAMED(SI_KERNEL), NAMED(SI_QUEUE),
	NAMED(SI_TIMER), NAMED(SI_MESGQ),  NAMED(SI_ASYNCIO),
	NAMED(SI_SIGIO), NAMED(SI_TKILL),  NAMED(SI_ASYNCNL),
};

static const struct named child_codes[] = {
	NAMED(CLD_EXITED),  NAMED(CLD_KILLED),	NAMED(CLD_DUMPED),
	NAMED(CLD_TRAPPED), NAMED(CLD_STOPPED), NAMED(CLD_CONTINUED),
};

static const struct named segv_codes[] = { NAMED(SEGV_MAPERR),
					   NAMED(SEGV_ACCERR),
					   NAMED(SEGV_BNDERR),
					   NAMED(SEGV_PKUERR) };

static const struct named bus_codes[] = { NAMED(BUS_ADRALN), NAMED(BUS_ADRERR),
					  NAMED(BUS_OBJERR) };

static const struct named fpe_codes[] = {
	NAMED(FPE_INTDIV), NAMED(FPE_INTOVF), NAMED(FPE_FLTDIV),
	NAMED(FPE_FLTOVF), NAMED(FPE_FLTUND), NAMED(FPE_FLTRES),
	NAMED(FPE_FLTINV), NAMED(FPE_FLTSUB),
};

static const struct named ill_codes[] = {
	NAMED(ILL_ILLOPC), NAMED(ILL_ILLOPN), NAMED(ILL_ILLADR),
	NAMED(ILL_ILLTRP), NAMED(ILL_PRVOPC), NAMED(ILL_PRVREG),
	NAMED(ILL_COPROC), NAMED(ILL_BADSTK),
};

static const struct named trap_codes[] = { NAMED(TRAP_BRKPT),
					   NAMED(TRAP_TRACE) };

static const struct named poll_codes[] = { NAMED(POLL_IN),  NAMED(POLL_OUT),
					   NAMED(POLL_MSG), NAMED(POLL_ERR),
					   NAMED(POLL_PRI), NAMED(POLL_HUP) };

#define OF(signal, table)                                                      \
	case signal:                                                           \
		text_one(text, (uint64_t)(unsigned int)info->si_code, (table), \
			 NR_NAMED(table), #signal "_???");                     \
		return

/* From the kernel for a reason of that signal's own. */
static void print_code(struct text *text, const siginfo_t *info)
{
	if (info->si_code <= 0 || info->si_code == SI_KERNEL) {
		for (size_t i = 0; i < NR_NAMED(codes); i++)
			if ((int)codes[i].value == info->si_code) {
				text_add(text, "%s", codes[i].name);
				return;
			}
		text_add(text, "%d", info->si_code);
		return;
	}
	switch (info->si_signo) {
		OF(SIGCHLD, child_codes);
		OF(SIGSEGV, segv_codes);
		OF(SIGBUS, bus_codes);
		OF(SIGFPE, fpe_codes);
		OF(SIGILL, ill_codes);
		OF(SIGTRAP, trap_codes);
		OF(SIGPOLL, poll_codes);
	default:
		text_add(text, "%#x", (unsigned int)info->si_code);
	}
}

static void print_pointer(struct text *text, const char *name, const void *at)
{
	text_add(text, at ? ", %s=%p" : ", %s=NULL", name, at);
}

static void print_value(struct text *text, const siginfo_t *info)
{
	text_add(text, ", si_int=%d", info->si_int);
	print_pointer(text, "si_ptr", info->si_ptr);
}

static void print_sender(struct text *text, const siginfo_t *info)
{
	text_add(text, ", si_pid=%d, si_uid=%u", (int)info->si_pid,
		 info->si_uid);
}

static void print_child(struct text *text, const siginfo_t *info)
{
	char name[16];

	print_sender(text, info);
	if (info->si_code == CLD_EXITED)
		text_add(text, ", si_status=%d", info->si_status);
	else
		text_add(text, ", si_status=%s",
			 trace_signal_name(info->si_status, name));
	text_add(text, ", si_utime=%ld, si_stime=%ld", (long)info->si_utime,
		 (long)info->si_stime);
}

/* By who made it, or by the signal if that was the kernel. */
static void print_rest(struct text *text, const siginfo_t *info)
{
	if (info->si_code == SI_TIMER) {
		text_add(text, ", si_timerid=%#x, si_overrun=%d",
			 (unsigned int)info->si_timerid, info->si_overrun);
		print_value(text, info);
		return;
	}
	if (info->si_code <= 0) {
		print_sender(text, info);
		if (info->si_code != SI_USER && info->si_code != SI_TKILL)
			print_value(text, info);
		return;
	}
	if (info->si_code == SI_KERNEL)
		return;
	switch (info->si_signo) {
	case SIGCHLD:
		print_child(text, info);
		return;
	case SIGSEGV:
	case SIGBUS:
	case SIGFPE:
	case SIGILL:
	case SIGTRAP:
		print_pointer(text, "si_addr", info->si_addr);
		return;
	case SIGPOLL:
		text_add(text, ", si_band=%ld, si_fd=%d", (long)info->si_band,
			 info->si_fd);
		return;
	default:
		return;
	}
}

void trace_print_siginfo(struct text *text, const siginfo_t *info)
{
	char name[16];

	if (!info->si_signo) {
		text_add(text, "{}");
		return;
	}
	text_add(text, "{si_signo=%s, si_code=",
		 trace_signal_name(info->si_signo, name));
	print_code(text, info);
	if (info->si_errno)
		text_add(text, ", si_errno=%d", info->si_errno);
	print_rest(text, info);
	text_add(text, "}");
}

void trace_print_signal(struct text *text,
			const struct flexsc_trace_record *record)
{
	siginfo_t info = { 0 };
	char name[16];

	memcpy(&info, record->args, sizeof(record->args));
	text_add(text, "--- %s ", trace_signal_name(info.si_signo, name));
	trace_print_siginfo(text, &info);
	text_add(text, " ---");
}
