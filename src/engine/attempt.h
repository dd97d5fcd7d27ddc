/* SPDX-License-Identifier: MIT */
/*
 * Carrying a descriptor call out without blocking, whatever the descriptor's
 * own flags say. O_NONBLOCK is never touched: the open file description may be
 * shared with other processes. What a blocking call would have done (write
 * everything, wait for MSG_WAITALL, ...) is rebuilt by trying again from the
 * progress so far, which is kept in call->ret.
 */
#ifndef FX_ENGINE_ATTEMPT_H
#define FX_ENGINE_ATTEMPT_H

#include "base/types.h"
#include "engine/quiet.h"

#include <linux/flexsc.h>

enum fx_kind {
	FX_KIND_UNKNOWN = 0,
	FX_KIND_SOCKET,
	FX_KIND_FILE, /* opened by a posted call without O_DIRECT */
	FX_KIND_STREAM, /* pipe, terminal, eventfd, ... */
	FX_KIND_PIPE, /* found where RWF_NOWAIT is refused (before 6.4) */
	FX_KIND_REGULAR, /* cannot be waited for: regular file, directory */
	FX_KIND_DIRECT, /* the same with O_DIRECT: each transfer is I/O */
};

enum fx_try {
	FX_TRY_DONE, /* call->ret is the result */
	FX_TRY_PARK, /* not ready: wait for the descriptor, then try again */
	FX_TRY_DISK, /* ends by itself, and soon unless storage is slow */
	FX_TRY_THREAD, /* only a thread of its own can do it */
	FX_TRY_LATER, /* not tried: see fx_park_try() */
	FX_TRY_TOGETHER, /* the same */
	FX_TRY_NOT_QUICK, /* nor was this: see fx_park_quick() */
};

/* Has a read that was not filled taken everything? Of a socket only. */
enum fx_drains {
	FX_DRAINS_UNKNOWN = 0,
	FX_DRAINS_YES,
	FX_DRAINS_NO,
};

/* What is known of a descriptor; see engine/fdrec.h for the rest of it. */
struct fx_hint {
	uint8_t kind; /* enum fx_kind; corrected when it proves wrong */
	bool ready; /* readiness was just reported: no need to ask first */
	bool more; /* not only data: the end, an error, urgent data */
	bool patient; /* the call is to wait, even if it is O_NONBLOCK */
	bool blocking; /* it was seen without O_NONBLOCK */
	bool ours; /* created by a posted call for posted calls */
	uint8_t drains; /* enum fx_drains */
	bool drained; /* set by the attempt: nothing more before an edge */
	bool thread; /* the caller may block, where it can be interrupted */
	uint32_t credit; /* bytes of send space known to be free */
	struct fx_guard *guard; /* for what might block after all, or NULL */
};

/*
 * sendfile: all of it or nothing. For an owner that makes it elsewhere if it
 * would wait: the kernel is to have both files from the beginning, whatever
 * becomes of their numbers. Set before the first attempt.
 */
extern bool fx_sendfile_whole;

/**
 * fx_attempt - try a descriptor call once
 * @call: number and arguments; ret is the progress so far (0 at first), and
 *        the result if FX_TRY_DONE is returned
 *
 * Context: any thread; never sleeps longer than the file system does.
 */
enum fx_try fx_attempt(struct flexsc_entry *call, struct fx_hint *hint);

#endif /* FX_ENGINE_ATTEMPT_H */
