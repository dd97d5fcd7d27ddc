/* SPDX-License-Identifier: MIT */
/* Numbers that strace(1) writes by name; see cli/trace_print.h. */
#include "cli/trace_print.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef FUTEX_WAITERS
#define FUTEX_WAITERS 0x80000000
#endif

static const struct named open_flags[] = {
	NAMED(O_CREAT),	   NAMED(O_EXCL),
	NAMED(O_NOCTTY),   NAMED(O_TRUNC),
	NAMED(O_APPEND),   NAMED(O_NONBLOCK),
	NAMED(O_SYNC),	   NAMED(O_DSYNC),
	NAMED(O_DIRECT),   { 0100000, "O_LARGEFILE" },
	NAMED(O_NOFOLLOW), NAMED(O_NOATIME),
	NAMED(O_CLOEXEC),  NAMED(O_PATH),
	NAMED(O_TMPFILE),  NAMED(O_DIRECTORY),
};

static const struct named access_modes[] = { NAMED(F_OK), NAMED(R_OK),
					     NAMED(W_OK), NAMED(X_OK) };

static const struct named whences[] = { NAMED(SEEK_SET), NAMED(SEEK_CUR),
					NAMED(SEEK_END), NAMED(SEEK_DATA),
					NAMED(SEEK_HOLE) };

static const struct named protections[] = { NAMED(PROT_NONE), NAMED(PROT_READ),
					    NAMED(PROT_WRITE),
					    NAMED(PROT_EXEC) };

static const struct named maps[] = {
	NAMED(MAP_SHARED_VALIDATE), NAMED(MAP_SHARED),
	NAMED(MAP_PRIVATE),	    NAMED(MAP_FIXED),
	NAMED(MAP_ANONYMOUS),	    NAMED(MAP_GROWSDOWN),
	NAMED(MAP_DENYWRITE),	    NAMED(MAP_LOCKED),
	NAMED(MAP_NORESERVE),	    NAMED(MAP_POPULATE),
	NAMED(MAP_NONBLOCK),	    NAMED(MAP_STACK),
	NAMED(MAP_HUGETLB),	    NAMED(MAP_FIXED_NOREPLACE),
};

static const struct named advices[] = {
	NAMED(MADV_NORMAL),   NAMED(MADV_RANDOM),     NAMED(MADV_SEQUENTIAL),
	NAMED(MADV_WILLNEED), NAMED(MADV_DONTNEED),   NAMED(MADV_FREE),
	NAMED(MADV_REMOVE),   NAMED(MADV_DONTFORK),   NAMED(MADV_DOFORK),
	NAMED(MADV_HUGEPAGE), NAMED(MADV_NOHUGEPAGE),
};

static const struct named at_flags[] = {
	NAMED(AT_SYMLINK_NOFOLLOW), NAMED(AT_REMOVEDIR),
	NAMED(AT_SYMLINK_FOLLOW),   NAMED(AT_NO_AUTOMOUNT),
	NAMED(AT_EMPTY_PATH),
};

static const struct named families[] = { NAMED(AF_UNSPEC),  NAMED(AF_UNIX),
					 NAMED(AF_INET),    NAMED(AF_INET6),
					 NAMED(AF_NETLINK), NAMED(AF_PACKET),
					 NAMED(AF_VSOCK) };

static const struct named types[] = {
	NAMED(SOCK_STREAM), NAMED(SOCK_DGRAM),	   NAMED(SOCK_RAW),
	NAMED(SOCK_RDM),    NAMED(SOCK_SEQPACKET), NAMED(SOCK_PACKET)
};

static const struct named socket_flags[] = { NAMED(SOCK_CLOEXEC),
					     NAMED(SOCK_NONBLOCK) };

static const struct named message_flags[] = {
	NAMED(MSG_OOB),	       NAMED(MSG_PEEK),		NAMED(MSG_DONTROUTE),
	NAMED(MSG_CTRUNC),     NAMED(MSG_TRUNC),	NAMED(MSG_DONTWAIT),
	NAMED(MSG_EOR),	       NAMED(MSG_WAITALL),	NAMED(MSG_CONFIRM),
	NAMED(MSG_ERRQUEUE),   NAMED(MSG_NOSIGNAL),	NAMED(MSG_MORE),
	NAMED(MSG_WAITFORONE), NAMED(MSG_CMSG_CLOEXEC), NAMED(MSG_FASTOPEN),
};

static const struct named levels[] = {
	NAMED(SOL_SOCKET),	    NAMED(SOL_IP),   NAMED(SOL_TCP),
	{ IPPROTO_UDP, "SOL_UDP" }, NAMED(SOL_IPV6), NAMED(SOL_RAW)
};

static const struct named socket_options[] = {
	NAMED(SO_DEBUG),
	NAMED(SO_REUSEADDR),
	NAMED(SO_TYPE),
	NAMED(SO_ERROR),
	NAMED(SO_DONTROUTE),
	NAMED(SO_BROADCAST),
	NAMED(SO_SNDBUF),
	NAMED(SO_RCVBUF),
	NAMED(SO_KEEPALIVE),
	NAMED(SO_OOBINLINE),
	NAMED(SO_PRIORITY),
	NAMED(SO_LINGER),
	NAMED(SO_REUSEPORT),
	NAMED(SO_PASSCRED),
	NAMED(SO_PEERCRED),
	NAMED(SO_RCVLOWAT),
	NAMED(SO_SNDLOWAT),
	NAMED(SO_ACCEPTCONN),
	NAMED(SO_PROTOCOL),
	NAMED(SO_DOMAIN),
	{ SO_RCVTIMEO, "SO_RCVTIMEO_OLD" },
	{ SO_SNDTIMEO, "SO_SNDTIMEO_OLD" },
};

static const struct named tcp_options[] = {
	NAMED(TCP_NODELAY),	 NAMED(TCP_MAXSEG),	  NAMED(TCP_CORK),
	NAMED(TCP_KEEPIDLE),	 NAMED(TCP_KEEPINTVL),	  NAMED(TCP_KEEPCNT),
	NAMED(TCP_SYNCNT),	 NAMED(TCP_DEFER_ACCEPT), NAMED(TCP_INFO),
	NAMED(TCP_QUICKACK),	 NAMED(TCP_CONGESTION),	  NAMED(TCP_FASTOPEN),
	NAMED(TCP_USER_TIMEOUT),
};

static const struct named shut_hows[] = { NAMED(SHUT_RD), NAMED(SHUT_WR),
					  NAMED(SHUT_RDWR) };

static const struct named fcntls[] = {
	NAMED(F_DUPFD),	     NAMED(F_GETFD),	     NAMED(F_SETFD),
	NAMED(F_GETFL),	     NAMED(F_SETFL),	     NAMED(F_GETLK),
	NAMED(F_SETLK),	     NAMED(F_SETLKW),	     NAMED(F_SETOWN),
	NAMED(F_GETOWN),     NAMED(F_DUPFD_CLOEXEC), NAMED(F_SETPIPE_SZ),
	NAMED(F_GETPIPE_SZ), NAMED(F_OFD_GETLK),     NAMED(F_OFD_SETLK),
	NAMED(F_OFD_SETLKW), NAMED(F_ADD_SEALS),     NAMED(F_GET_SEALS),
};

static const struct named ioctls[] = {
	NAMED(FIONREAD),   NAMED(FIONBIO),   NAMED(TCGETS),
	NAMED(TCSETS),	   NAMED(FIOASYNC),  NAMED(TIOCGWINSZ),
	NAMED(TIOCSWINSZ), NAMED(TIOCGPGRP), NAMED(TIOCSPGRP),
	NAMED(TIOCNOTTY),  NAMED(TIOCSCTTY), NAMED(FIOCLEX),
};

static const struct named futex_ops[] = {
	NAMED(FUTEX_WAIT),
	NAMED(FUTEX_WAKE),
	NAMED(FUTEX_FD),
	NAMED(FUTEX_REQUEUE),
	NAMED(FUTEX_CMP_REQUEUE),
	NAMED(FUTEX_WAKE_OP),
	NAMED(FUTEX_LOCK_PI),
	NAMED(FUTEX_UNLOCK_PI),
	NAMED(FUTEX_TRYLOCK_PI),
	NAMED(FUTEX_WAIT_BITSET),
	NAMED(FUTEX_WAKE_BITSET),
	NAMED(FUTEX_WAIT_REQUEUE_PI),
	NAMED(FUTEX_CMP_REQUEUE_PI),
};

static const struct named epoll_ops[] = { NAMED(EPOLL_CTL_ADD),
					  NAMED(EPOLL_CTL_DEL),
					  NAMED(EPOLL_CTL_MOD) };

static const struct named epoll_events[] = {
	NAMED(EPOLLIN),	    NAMED(EPOLLPRI),	 NAMED(EPOLLOUT),
	NAMED(EPOLLRDNORM), NAMED(EPOLLRDBAND),	 NAMED(EPOLLWRNORM),
	NAMED(EPOLLWRBAND), NAMED(EPOLLMSG),	 NAMED(EPOLLERR),
	NAMED(EPOLLHUP),    NAMED(EPOLLRDHUP),	 NAMED(EPOLLEXCLUSIVE),
	NAMED(EPOLLWAKEUP), NAMED(EPOLLONESHOT), NAMED(EPOLLET),
};

static const struct named poll_events[] = {
	NAMED(POLLIN),	   NAMED(POLLPRI),    NAMED(POLLOUT),
	NAMED(POLLRDNORM), NAMED(POLLRDBAND), NAMED(POLLWRNORM),
	NAMED(POLLWRBAND), NAMED(POLLERR),    NAMED(POLLHUP),
	NAMED(POLLNVAL),   NAMED(POLLMSG),    NAMED(POLLRDHUP),
};

static const struct named clocks[] = {
	NAMED(CLOCK_REALTIME),		 NAMED(CLOCK_MONOTONIC),
	NAMED(CLOCK_PROCESS_CPUTIME_ID), NAMED(CLOCK_THREAD_CPUTIME_ID),
	NAMED(CLOCK_MONOTONIC_RAW),	 NAMED(CLOCK_REALTIME_COARSE),
	NAMED(CLOCK_MONOTONIC_COARSE),	 NAMED(CLOCK_BOOTTIME),
};

static const struct named mask_hows[] = { NAMED(SIG_BLOCK), NAMED(SIG_UNBLOCK),
					  NAMED(SIG_SETMASK) };

static const struct named wait_options[] = {
	NAMED(WNOHANG),	   NAMED(WSTOPPED), NAMED(WEXITED),
	NAMED(WCONTINUED), NAMED(WNOWAIT),
};

static const struct named locks[] = { NAMED(LOCK_SH), NAMED(LOCK_EX),
				      NAMED(LOCK_UN), NAMED(LOCK_NB) };

static const struct named resources[] = {
	NAMED(RLIMIT_CPU),	NAMED(RLIMIT_FSIZE),  NAMED(RLIMIT_DATA),
	NAMED(RLIMIT_STACK),	NAMED(RLIMIT_CORE),   NAMED(RLIMIT_RSS),
	NAMED(RLIMIT_NPROC),	NAMED(RLIMIT_NOFILE), NAMED(RLIMIT_MEMLOCK),
	NAMED(RLIMIT_AS),	NAMED(RLIMIT_LOCKS),  NAMED(RLIMIT_SIGPENDING),
	NAMED(RLIMIT_MSGQUEUE), NAMED(RLIMIT_NICE),   NAMED(RLIMIT_RTPRIO),
};

#define ONE(table, unknown) \
	text_one(text, value, table, NR_NAMED(table), unknown)
#define FLAGS(table, unknown) \
	text_flags(text, value, table, NR_NAMED(table), unknown)

void trace_print_open_flags(struct text *text, int flags)
{
	static const char *const how[] = { "O_RDONLY", "O_WRONLY", "O_RDWR",
					   "O_ACCMODE" };
	unsigned int rest = (unsigned int)flags & ~(unsigned int)O_ACCMODE;

	text_add(text, "%s", how[flags & O_ACCMODE]);
	/* It has O_DIRECTORY in it. */
	if ((rest & O_TMPFILE) == O_TMPFILE) {
		text_add(text, "|O_TMPFILE");
		rest &= ~(unsigned int)O_TMPFILE;
	}
	if (rest) {
		text_add(text, "|");
		text_flags(text, rest, open_flags, NR_NAMED(open_flags), NULL);
	}
}

void trace_print_mode(struct text *text, unsigned int mode)
{
	text_add(text, mode ? "%#03o" : "%03o", mode);
}

/* With what kind of file it is; nothing of that: a file. */
void trace_print_file_mode(struct text *text, unsigned int mode)
{
	static const struct named types[] = {
		NAMED(S_IFREG), NAMED(S_IFDIR), NAMED(S_IFLNK),	 NAMED(S_IFCHR),
		NAMED(S_IFBLK), NAMED(S_IFIFO), NAMED(S_IFSOCK),
	};
	static const struct named bits[] = { NAMED(S_ISUID), NAMED(S_ISGID),
					     NAMED(S_ISVTX) };

	if (mode & S_IFMT) {
		text_one(text, mode & S_IFMT, types, NR_NAMED(types),
			 "S_IF???");
		text_add(text, "|");
	}
	if (mode & 07000) {
		text_flags(text, mode & 07000, bits, NR_NAMED(bits), NULL);
		text_add(text, "|");
	}
	trace_print_mode(text, mode & 0777);
}

/* [USR1 CHLD]; most of them: ~[KILL] */
void trace_print_mask(struct text *text, uint64_t signals)
{
	bool most = __builtin_popcountll(signals) > 42;
	const char *between = "";
	char name[16];

	text_add(text, most ? "~[" : "[");
	for (int i = 1; i <= 64; i++)
		if ((signals >> (i - 1) & 1) != most) {
			trace_signal_name(i, name);
			text_add(text, "%s%s", between,
				 strncmp(name, "SIG", 3) ? name : name + 3);
			between = " ";
		}
	text_add(text, "]");
}

void trace_print_poll_events(struct text *text, unsigned int events)
{
	text_flags(text, events, poll_events, NR_NAMED(poll_events), NULL);
}

void trace_print_epoll_events(struct text *text, unsigned int events)
{
	text_flags(text, events, epoll_events, NR_NAMED(epoll_events), NULL);
}

const char *trace_signal_name(int signal, char number[16])
{
	const char *name = sigabbrev_np(signal);

	if (name)
		snprintf(number, 16, "SIG%s", name);
	else if (signal >= 32 && signal <= 64)
		snprintf(number, 16, "SIGRT_%d", signal - 32);
	else
		snprintf(number, 16, "%d", signal);
	return number;
}

static void print_type(struct text *text, uint64_t value)
{
	uint64_t flags = value & (SOCK_CLOEXEC | SOCK_NONBLOCK);

	text_one(text, value & ~flags, types, NR_NAMED(types), "SOCK_???");
	if (flags) {
		text_add(text, "|");
		text_flags(text, flags, socket_flags, NR_NAMED(socket_flags),
			   NULL);
	}
}

/* CLOEXEC and NONBLOCK have one value for all, and a name for each. */
static void print_close(struct text *text, uint64_t value, unsigned int nr)
{
	const char *prefix = "O";

	switch (nr) {
	case SYS_accept4:
		prefix = "SOCK";
		break;
	case SYS_epoll_create1:
		prefix = "EPOLL";
		break;
	case SYS_eventfd2:
		prefix = "EFD";
		break;
	case SYS_signalfd4:
		prefix = "SFD";
		break;
	case SYS_timerfd_create:
		prefix = "TFD";
		break;
	case SYS_inotify_init1:
		prefix = "IN";
		break;
	default:
		break;
	}
	if (value & ~(uint64_t)(O_CLOEXEC | O_NONBLOCK) || !value)
		text_add(text, value ? "%#lx" : "0", value);
	else
		text_add(text, "%s%s%s%s%s", value & O_CLOEXEC ? prefix : "",
			 value & O_CLOEXEC ? "_CLOEXEC" : "",
			 value == (O_CLOEXEC | O_NONBLOCK) ? "|" : "",
			 value & O_NONBLOCK ? prefix : "",
			 value & O_NONBLOCK ? "_NONBLOCK" : "");
}

static void print_futex(struct text *text, uint64_t value)
{
	uint64_t flags = value & (FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME);

	text_one(text, value & ~flags, futex_ops, NR_NAMED(futex_ops), NULL);
	if (flags & FUTEX_PRIVATE_FLAG)
		text_add(text, "_PRIVATE");
	if (flags & FUTEX_CLOCK_REALTIME)
		text_add(text, "|FUTEX_CLOCK_REALTIME");
}

static void print_option(struct text *text, uint64_t value, uint64_t level)
{
	if (level == SOL_SOCKET)
		ONE(socket_options, "SO_???");
	else if (level == SOL_TCP)
		ONE(tcp_options, "TCP_???");
	else
		text_add(text, "%#lx", value);
}

/* The rarer half. */
static bool print_more(struct text *text, char kind, uint64_t value,
		       unsigned int nr)
{
	switch (kind) {
	case 'c':
		ONE(fcntls, "F_???");
		return true;
	case 'I':
		ONE(ioctls, NULL);
		return true;
	case 'q':
		print_futex(text, value);
		return true;
	case 'Q':
		ONE(epoll_ops, "EPOLL_CTL_???");
		return true;
	case 'h':
		ONE(mask_hows, "SIG_???");
		return true;
	case '#':
		FLAGS(wait_options, "W???");
		return true;
	case '$':
		FLAGS(locks, "LOCK_???");
		return true;
	case '%':
		ONE(resources, "RLIMIT_???");
		return true;
	case 'L':
		ONE(clocks, "CLOCK_???");
		return true;
	case '@':
		FLAGS(at_flags, "AT_???");
		return true;
	case '+':
		print_close(text, value, nr);
		return true;
	default:
		return false;
	}
}

bool trace_print_flags(struct text *text, char kind, uint64_t value,
		       unsigned int nr, uint64_t before)
{
	value = (uint32_t)value;
	switch (kind) {
	case 'O':
		/* Of pipe2 and dup3 it is no way of access. */
		if (nr == SYS_pipe2 || nr == SYS_dup3)
			FLAGS(open_flags, NULL);
		else
			trace_print_open_flags(text, (int)value);
		return true;
	case 'R':
		FLAGS(access_modes, "?_OK");
		return true;
	case 'w':
		ONE(whences, "SEEK_???");
		return true;
	case 'P':
		FLAGS(protections, "PROT_???");
		return true;
	case 'f':
		FLAGS(maps, "MAP_???");
		return true;
	case 'a':
		ONE(advices, "MADV_???");
		return true;
	case 'D':
		ONE(families, "AF_???");
		return true;
	case 'T':
		print_type(text, value);
		return true;
	case 'G':
		FLAGS(message_flags, "MSG_???");
		return true;
	case 'E':
		ONE(levels, "SOL_???");
		return true;
	case 'e':
		print_option(text, value, before);
		return true;
	case 'H':
		ONE(shut_hows, "SHUT_???");
		return true;
	default:
		return print_more(text, kind, value, nr);
	}
}
