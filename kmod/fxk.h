/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * flexsc.ko: what its files share. <linux/flexsc.h> has what user space sees.
 *
 *   ctx    a registered page set             ctx.c, map.c, limit.c
 *   call   an entry that has left its page   call.c, chain.c
 *   runner a thread inside of RUN or WAIT    run.c, thread.c
 *
 * A runner takes entries from the ring (ring.c) and brings each as far as it
 * gets (step.c): carried out, armed on wait queues (arm.c), or queued for a
 * thread (thread.c). Most never leave the runner's stack.
 *
 * Key to the fields: I written once before others see it; L under ctx->lock;
 * R the runner that holds the call, or whose own this is; A atomic; W written
 * once more by anybody, read once.
 *
 * Locks. ctx->lock is inside of wait queues' locks, since wake-ups take it; so
 * no wait queue that a file shows to poll(2) is woken, and none is left, under
 * it. thread_wq, core_wq and standby_wq are private and may be woken under it.
 */
#ifndef FXK_H
#define FXK_H

#include "compat.h"

#include <linux/atomic.h>
#include <linux/fs.h>
#include <linux/irq_work.h>
#include <linux/list.h>
#include <linux/mm_types.h>
#include <linux/poll.h>
#include <linux/preempt.h>
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/task_work.h>
#include <linux/timer.h>
#include <linux/wait.h>

#include <linux/flexsc.h>

#define FXK_FD_HASH 256
#define FXK_SEAT_PAGES 256

/* Counted since the set was registered; see struct flexsc_events. */
struct fxk_events {
	atomic64_t runs, entries, completed, armed, queued, interrupted;
	atomic64_t cancelled, refused, dropped, handed_over;
};

struct fxk_ctx {
	unsigned long *pages; /* A: addresses of the mapping's pages; 0: none */
	u32 nr_pages; /* I */
	u32 max_entries; /* I */
	u32 limit; /* L: max_entries; 0: nothing is taken any more */
	u32 sq_page, cq_page, entries_page; /* I: where each begins */
	u32 nr_segments; /* I: that the rings can have */
	u32 flags; /* I: FLEXSC_REG_* */
	u32 max_threads; /* I */
	struct mm_struct *mm; /* I: compared only */
	struct fxk_user *user; /* I */
	struct fxk_call ***inflight; /* L: by page, by entry; see call.c */
	struct rcu_head rcu;

	spinlock_t lock ____cacheline_aligned;
	struct list_head ready; /* L: calls that can go on */
	struct list_head queue; /* L: calls for threads */
	struct hlist_head runners; /* L: all but own */
	struct fxk_runner *own; /* I: for RUN, whoever has it; see run.h */
	u32 poking; /* L: somebody looks at own */
	struct hlist_head armed[FXK_FD_HASH]; /* L: by descriptor */
	struct fxk_seat *seats[FXK_SEAT_PAGES]; /* A; see stay.h */
	u32 seats_hand; /* L: which to look at next */
	const struct cred *cred; /* L: of who registered or ran last */
	u32 nr_queued; /* L */
	u32 nr_idle; /* L: threads that wait for the queue */
	u32 nr_threads; /* L: in WAIT */
	u32 nr_standby; /* L: of them, those that could be the core */
	u32 dismissal; /* L: how often those of WAIT_POLL were sent back */
	u32 nr_armed; /* L */
	u32 nr_mappings; /* A, by mm's lock */
	bool mapped; /* A, by mm's lock: once is enough */
	bool stopped; /* L: STOP, or the mapping is gone */
	bool dead; /* L: the mapping is gone */
	bool watching; /* L: the timer is on its way */
	u32 event; /* A: something for the owner since it looked */
	u32 wake; /* A: WAKE */
	bool short_of; /* A: threads, and the owner does not know */
	wait_queue_head_t owner_wq; /* RUN that sleeps; poll(2) */
	wait_queue_head_t thread_wq; /* WAIT */
	struct fxk_runner *core; /* L: who polls; see core.h */
	u32 core_awake; /* A: and is not blocked in a call */
	wait_queue_head_t core_wq; /* it sleeps */
	wait_queue_head_t standby_wq;
	struct irq_work stuck; /* the core has blocked */
	struct timer_list watch;
	struct irq_work tell; /* wakes owner_wq from where it cannot be */
	struct list_head link; /* of all sets, under their lock */
	struct fxk_events events;
};

enum fxk_state {
	FXK_HELD, /* a runner has it */
	FXK_ARMED, /* on wait queues */
	FXK_READY, /* on ctx->ready */
	FXK_QUEUED, /* on ctx->queue */
};

struct fxk_wait {
	wait_queue_entry_t entry;
	struct wait_queue_head *head; /* NULL: on none */
	struct fxk_call *call;
};

/*
 * A call. The first part is all that a call on a runner's stack uses; the
 * rest is for one that has left it.
 */
struct fxk_call {
	struct pt_regs regs; /* R: the arguments */
	s64 done; /* R: bytes moved so far */
	u32 index; /* I: entry */
	u16 nr; /* I */
	u8 flags; /* R: FLEXSC_F_* */
	bool heap; /* I: has memory of its own */
	bool thread; /* R: only a thread can carry it out */
	bool denied; /* R: its like was just made, and said it would wait */
	struct file *file; /* R: what it is armed on, with a reference */
	struct fxk_call *next; /* R: rest of its chain */

	u8 state; /* L: enum fxk_state */
	bool away; /* R: noted as under way */
	bool woken; /* L: while it was being armed */
	bool cancelled; /* L: to end when it goes on next */
	bool nested; /* R: armed on a file whose wake-ups may come from us */
	bool restarts; /* R: restart is how it goes on */
	int fd; /* R: armed on */
	__poll_t events; /* R: what it waits for */
	struct fxk_ctx *ctx; /* I */
	struct list_head link; /* L: ready or queue */
	struct hlist_node fd_link; /* L: ctx->armed */
	struct fxk_wait waits[2];
	struct fxk_stay *stay; /* L: in place of them */
	struct restart_block restart; /* R */
};

/* A party's private knowledge of which segment its position lies in. */
struct fxk_view {
	u64 until; /* first position that is not of this segment */
	u32 segment, mask, base, shift;
};

/*
 * A consumer's place on the submission ring: slots that lie one after the
 * other, in one page and one lap.
 */
struct fxk_stretch {
	u64 head; /* position of the first */
	u32 *slot, *end;
	u32 tag;
	u64 until; /* what *next_start was */
	const __u64 *next_start; /* user space's: of the next segment */
};

/*
 * A producer's place on the completion ring, while its positions come one
 * after the other: the slot at one, and where that ends.
 */
struct fxk_cursor {
	u64 position; /* the next, if it is below *next_start */
	u64 *slot, *end;
	const u64 *next_start; /* user space's, or fxk_no_position */
	u32 tag;
};

/* No entry: fxk_runner.current_entry. */
#define FXK_NO_ENTRY U32_MAX
/* The same, but it is about to take one, or to complete one. */
#define FXK_BETWEEN (U32_MAX - 1)

/* What a call was, while its registers are those of its like; see desc.h. */
struct fxk_like {
	u16 ask_nr; /* that one's number */
	bool stream;
	bool became; /* they are */
	unsigned long dx, r10, r8, r9;
	s64 ret; /* what came of it; of FXK_QUICK_OVER and FXK_QUICK_MADE */
};

/* Which call is running here, for who wants to interrupt it. */
struct fxk_runner {
	struct fxk_ctx *ctx; /* I */
	struct task_struct *task; /* I; of ctx->own: A, NULL if it is free */
	struct hlist_node link; /* L: ctx->runners */
	u32 current_entry; /* W: its index, FXK_NO_ENTRY or _BETWEEN */
	u32 seq; /* W: another one in each call */
	u32 seen; /* L: seq at the last tick of the watch */
	bool idle; /* R: sleeps, in no call */
	bool may_block; /* R: no interruption of calls that last */
	bool poked; /* L: poke is on its way */
	bool hurried; /* R: was interrupted by the watch */
	u32 nr_taken, nr_completed, nr_notices; /* R */
	u32 nr_told; /* R: completed and notices that the owner was told of */
	bool quiet; /* R: SIGPIPE and SIGXFSZ are blocked */
	unsigned long loud; /* R: of them, those pending before */
	sigset_t blocked; /* R: what was blocked before */
	s32 error; /* W: why it has to stop */
	struct callback_head poke;
	struct preempt_notifier mark; /* tells that the task is a runner */
	struct fxk_view sq, cq; /* R */
	struct fxk_stretch at; /* R */
	struct fxk_cursor done; /* R */
	struct fxk_call now; /* R: the call that has not left the page */
	struct fxk_like was; /* R: its own */
	struct fxk_call *spare; /* R: memory of calls; of ctx->own only */
	u32 nr_spare; /* R */
};

/* fxk_runner.error: another one polls. No error that user space sees. */
#define FXK_ROLE_LOST (-4000)

/* What became of a step. */
enum fxk_step {
	FXK_DONE, /* over: there is a result */
	FXK_GONE, /* armed or queued: somebody else goes on with it */
	FXK_SIGNAL, /* kept for the next runner; this one has a signal */
};

/* The table of calls: a class and marks; see calls.c. */
enum fxk_class {
	FXK_ABSENT,
	FXK_NONE,
	FXK_NEVER,
	FXK_DISK,
	FXK_FD,
	FXK_WAIT,
};
#define FXK_CLASS 7u
#define FXK_OUT 8u /* waits until it can write */
#define FXK_CLOSES 16u /* closes the descriptor of an argument */
#define FXK_LOUD 32u /* SIGPIPE or SIGXFSZ can come of it */
#define FXK_FEW 64u /* has arguments, three at most */
#define FXK_MANY 128u /* has more */
#define FXK_STRAIGHT 256u /* nothing is to be seen to before */
/* A power of two: what is beyond is not asked for by number. */
#define FXK_NR_ROWS 1024u

extern const u16 fxk_calls[FXK_NR_ROWS];

#endif /* FXK_H */
