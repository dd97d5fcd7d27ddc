/* SPDX-License-Identifier: MIT */
/*
 * What an engine needs to know of a system call number. The table itself is
 * generated from src/call/syscalls.tbl; an engine gets a pointer to it.
 */
#ifndef FX_ENGINE_DESC_H
#define FX_ENGINE_DESC_H

#include <stdint.h>

enum fx_call_class {
	FX_CALL_ABSENT = 0, /* not implemented on this machine: -ENOSYS */
	FX_CALL_NONE, /* refused: -EOPNOTSUPP */
	FX_CALL_NEVER, /* cannot block */
	FX_CALL_DISK, /* may wait for storage, but ends by itself */
	FX_CALL_FD, /* waits until a descriptor is ready */
	FX_CALL_WAIT, /* may wait for ever for something else */
};

/* fx_call_desc.flags */
#define FX_CALL_SELF 1 /* depends on the calling thread: the owner's only */
#define FX_CALL_OUT 2 /* fd_arg: writable, not readable, is waited for */
#define FX_CALL_NEWFD 4 /* the result is a new descriptor */
#define FX_CALL_CLOSES 8 /* closes descriptors */
#define FX_CALL_URING 16 /* io_uring has an operation for it */

struct fx_call_desc {
	const char *name;
	const char *reason; /* why refused, or NULL */
	uint8_t call_class;
	uint8_t nr_args;
	int8_t fd_arg; /* which argument is the descriptor, or -1 */
	uint8_t flags;
};

/* Defined in the call layer, handed down; FX_NR_CALLS numbers. */
#define FX_NR_CALLS 512

/*
 * Not system calls: wait until a descriptor is ready for the events of the
 * second argument (as poll), without doing anything; the result is what it is
 * ready for. O_NONBLOCK and the socket's time-outs do not matter. In the table
 * like calls; -ENOSYS where an engine cannot.
 *
 * With FX_READY_NEXT the caller has just found that it is not ready, so that
 * nothing is asked: the next edge ends it, and it may end for nothing.
 */
#define FX_READY_IN FX_NR_CALLS
#define FX_READY_OUT (FX_NR_CALLS + 1)
#define FX_NR_ROWS (FX_NR_CALLS + 2)
#define FX_READY_NEXT 0x10000u /* beside the events */

#define fx_is_ready_wait(nr) ((nr) >= FX_READY_IN)

#endif /* FX_ENGINE_DESC_H */
