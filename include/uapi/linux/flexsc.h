/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * FlexSC: exception-less system calls. The memory that a process shares with
 * whoever carries its calls out: syscall threads in user space, or flexsc.ko.
 *
 * A *page set* is one mapping: a header, two rings of entry indices, and the
 * syscall pages themselves (64 entries of 64 bytes in each 4 KiB page). It
 * belongs to one user-side owner. (flexsc-osdi10.txt, 3.2; the rings answer
 * the scaling question of libflexsc-atc11.txt, 7.)
 *
 * Key to the fields: O written by the owner only; S by whoever moves the
 * status; E by the engine that owns the entry (status BUSY); P by producers of
 * completions, with locked instructions; C by consumers of submissions, with
 * locked instructions; I written once before the set is shared; K by flexsc.ko
 * only.
 */
#ifndef _UAPI_LINUX_FLEXSC_H
#define _UAPI_LINUX_FLEXSC_H

#include <linux/ioctl.h>
#include <linux/types.h>

/* Changes whenever a field moves or a rule below changes. */
#define FLEXSC_ABI_VERSION 1
#define FLEXSC_MAGIC 0x63734c46u /* "FLsc" */

#define FLEXSC_PAGE_SIZE 4096u
#define FLEXSC_ENTRY_SIZE 64u
#define FLEXSC_PAGE_ENTRIES 64u
#define FLEXSC_MAX_ENTRIES 131072u /* indices have 17 bits */
#define FLEXSC_MAX_CHAIN 16u

/*
 * Life of an entry:
 *
 *   FREE -> SUBMITTED -> BUSY -> DONE -> SUBMITTED ...
 *                 \        \
 *                  +-> CANCEL -> DONE
 *
 * FREE was never used. The owner fills the entry and stores SUBMITTED last,
 * with release order and in one store with number, count and flags; then it
 * puts the index on the submission ring. Whoever moves SUBMITTED to BUSY by
 * compare-and-swap owns the entry until it completes. CANCEL is a request,
 * set by the owner by compare-and-swap from SUBMITTED or BUSY; the engine
 * still completes the entry. Only the completion slot lets the owner use an
 * entry again; a DONE seen in the status alone does not.
 */
enum flexsc_status {
	FLEXSC_FREE = 0,
	FLEXSC_SUBMITTED = 1,
	FLEXSC_BUSY = 2,
	FLEXSC_DONE = 3,
	FLEXSC_CANCEL = 4,
};

/*
 * Chains. Entries joined by LINK are carried out one after the other by one
 * engine. Argument i of an entry may be the result of an earlier call of the
 * chain: bit i of the flags is set and the argument holds the distance back
 * (1: the call just before). Whoever carries the chain out replaces it by the
 * value and clears the bit when that call has succeeded.
 * A call that fails (negative result) ends the chain: the calls after it
 * complete with -ECANCELED, except those marked ALWAYS, which still run when
 * none of their arguments is missing.
 */
#define FLEXSC_F_ARG(i) (1u << (i))
#define FLEXSC_F_ARGS 0x3fu
#define FLEXSC_F_ALWAYS 0x40u
#define FLEXSC_F_LINK 0x80u /* the next submission index is the chain's next */

/**
 * struct flexsc_entry - one call; exactly one cache line
 * @status:  S, enum flexsc_status
 * @nr:      O, system call number of the x86-64 table; no x32 bit
 * @nr_args: O, how many of @args count
 * @flags:   O, then E: FLEXSC_F_*
 * @args:    O, then E for FLEXSC_F_ARG
 * @ret:     E, result as the kernel returns it: >= 0 or -errno; undefined
 *           until then
 */
struct flexsc_entry {
	__u32 status;
	__u16 nr;
	__u8 nr_args;
	__u8 flags;
	__u64 args[6];
	__s64 ret;
} __attribute__((aligned(64)));

/*
 * Slots of both rings begin alike: VALID | lap (13) | NOTICE | entry index (17).
 *
 * Submission slot, 32 bits. The owner alone produces. A consumer reads the
 * slot at sq_head, and owns what it found once it has moved sq_head past it by
 * compare-and-swap (past all of it, for a chain: the owner writes a chain's
 * slots last to first, so that the first one is proof of the others).
 * NOTICE says that the named entry, which was BUSY, wants to end; the consumer
 * acts on it and then acknowledges it by a completion slot with NOTICE. The
 * owner does not use an entry again before it has seen both the completion
 * and the acknowledgement.
 *
 * Completion slot, 64 bits: the lower half as above, the upper half is the
 * call's result, or FLEXSC_SLOT_WIDE if that does not fit: then it is in the
 * entry. Many produce: a producer reserves a position by fetch-and-add on
 * cq_tail, then stores the slot with release order. The owner alone consumes
 * and looks only at the slot at its own head.
 */
#define FLEXSC_SLOT_INDEX 0x0001ffffu
#define FLEXSC_SLOT_NOTICE 0x00020000u
#define FLEXSC_SLOT_LAP_SHIFT 18
#define FLEXSC_SLOT_LAP_MASK 0x1fffu
#define FLEXSC_SLOT_VALID 0x80000000u
#define FLEXSC_SLOT_WIDE (-2147483647 - 1)

/*
 * Rings grow with the set, so that a small one stays within a few cache
 * lines. A ring has segments of FLEXSC_RING_MIN << k slots, k = 0, 1, ..., and
 * segment k serves the positions from start[k] up to start[k + 1]; a start not
 * decided yet is ~0. Within segment k position p lives in slot
 * (size_k - FLEXSC_RING_MIN) + p % size_k, and its lap is p / size_k.
 * A ring always has at least twice as many slots as the set has entries:
 * every entry can be on it once, with its cancel notice, without overflow.
 */
#define FLEXSC_RING_MIN 128u
#define FLEXSC_RING_SEGMENTS 12u /* 128 << 11 = 2 * FLEXSC_MAX_ENTRIES */
#define FLEXSC_RING_SLOTS (FLEXSC_RING_MIN * ((1u << FLEXSC_RING_SEGMENTS) - 1))

/**
 * struct flexsc_set - header of a page set
 * @magic:          I, FLEXSC_MAGIC
 * @version:        I, FLEXSC_ABI_VERSION
 * @max_entries:    I, what the mapping has room for; a power of two
 * @nr_entries:     O, how many are in use so far; grows by whole pages
 * @sq_offset:      I, bytes from the header to the submission slots
 * @cq_offset:      I, bytes from the header to the completion slots
 * @entries_offset: I, bytes from the header to the first syscall page
 * @run_wanted:     K, not 0: FLEXSC_IOC_RUN would find a call to go on with
 * @nr_armed:       K, calls that wait for their descriptor, in no thread
 * @threads_wanted: K, not 0: who polls has queued a call that finds no thread;
 *                  RUN says how many
 * @sq_start:       O, segment starts of the submission ring
 * @cq_start:       O, segment starts of the completion ring
 * @owner_sleeping: O sets, P clears by exchange: the owner wants a wake-up
 * @engine_sleeping: C sets, O clears by exchange: a poller wants a wake-up
 * @sq_head:        C, next position to consume
 * @cq_tail:        P, next position to reserve
 *
 * Each group of fields that different sides write has its own cache line.
 */
struct flexsc_set {
	__u32 magic;
	__u32 version;
	__u32 max_entries;
	__u32 nr_entries;
	__u64 sq_offset;
	__u64 cq_offset;
	__u64 entries_offset;
	__u32 run_wanted;
	__u32 nr_armed;
	__u32 threads_wanted;
	__u32 reserved32;
	__u64 reserved;
	__u64 sq_start[16];
	__u64 cq_start[16];
	__u32 owner_sleeping __attribute__((aligned(64)));
	__u32 engine_sleeping __attribute__((aligned(64)));
	__u64 sq_head __attribute__((aligned(64)));
	__u64 cq_tail __attribute__((aligned(64)));
	__u8 pad[56];
};

/*
 * The kernel module, flexsc.ko, and its device. One open file of it has at
 * most one page set. (flexsc-osdi10.txt, 3.2: flexsc_register() is open,
 * FLEXSC_IOC_REGISTER and mmap; flexsc_wait() is FLEXSC_IOC_WAIT.)
 *
 * Who may use a set. It belongs to the address space that registered it. In
 * any other one (a forked child, a program that was executed, the receiver of
 * a passed descriptor) every request fails with -EPERM, and the mapping is not
 * inherited. When the mapping is gone, so is the set: what waits is dropped.
 *
 * Whose calls. An entry is carried out by the thread that is inside of RUN or
 * WAIT, as if that thread had made the call: with its credentials, limits,
 * cgroup, root and descriptors. A thread that is traced, audited, filtered by
 * seccomp or has system calls dispatched to itself is refused (-EACCES), at
 * any entry, so that nothing passes unseen; so is a thread of WAIT whose
 * credentials are not those of the thread that registered or ran last. The
 * administrator can decide otherwise by module parameters.
 *
 * What may be called is in a list in the module; other numbers complete with
 * -EOPNOTSUPP, or -ENOSYS where there is no such call.
 *
 * Memory. The module reads each value of the mapping once, and bounds what it
 * uses as an index by what it keeps in its own memory; calls under way are in
 * its own memory altogether. It ignores the offsets in the header and
 * nr_entries. It is a consumer of submissions and a producer of completions
 * like any other, by the same words and in the same order, so user space may
 * be one beside it. An entry that was not SUBMITTED or CANCEL when it was taken
 * is dropped. To submit one again while its call is under way is an error of
 * the program, which harms nobody else: the new call is made beside the old
 * one, and each completes, under the same index; but of an entry one call can
 * wait, so a new one that would have to (for a descriptor or a thread)
 * completes with -EBUSY, and a cancel is for the one that waits.
 *
 * How calls run. RUN carries out what is on the ring, in the calling thread.
 * A call on a descriptor that can be polled never blocks it: if it is not
 * ready, it is armed on the wait queues of its file and holds no thread. What
 * may wait for anything else goes to a thread in WAIT. A call that was
 * expected to end soon and does not is interrupted after some 10 ms and goes
 * there, too.
 * Signals of the application are not lost and do not end posted calls; SIGPIPE
 * and SIGXFSZ are not raised by them. Deferred work of a call (the last close
 * of a file) is done when it completes.
 *
 * poll(2) on the descriptor: readable when something completed, or became
 * ready to go on, since the last RUN with argument 0 began.
 */
#define FLEXSC_DEVICE "/dev/flexsc"

/* A call keeps the file that its descriptor had when it began to wait. */
#define FLEXSC_REG_KEEP_FILES 1u

/**
 * struct flexsc_register - argument of FLEXSC_IOC_REGISTER
 * @version:     in: FLEXSC_ABI_VERSION; out: the module's
 * @flags:       in: FLEXSC_REG_*
 * @max_entries: in: 64 to FLEXSC_MAX_ENTRIES; out: rounded up to a power of 2
 * @max_threads: in: threads in WAIT; out: what the module allows
 * @map_size:    out: to be mapped as a whole, shared, from offset 0
 * @reserved:    in: 0
 *
 * -EPROTONOSUPPORT: another version. -EBUSY: has a set. -EDQUOT, -ENOMEM: the
 * limits of the user or the machine. -EACCES: see above.
 */
struct flexsc_register {
	__u32 version;
	__u32 flags;
	__u32 max_entries;
	__u32 max_threads;
	__u64 map_size;
	__u64 reserved[3];
};

/*
 * WAIT: carry out submissions as RUN does, polling for them: a kernel core.
 * Of the threads of a set that do so one polls, the others stand by: when it
 * blocks in a call, one of them goes on at once. When none can, the owner's
 * RUN does. Polling is shorter than @spin_ns where it was in vain lately.
 */
#define FLEXSC_WAIT_POLL 1u

/**
 * struct flexsc_wait - argument of FLEXSC_IOC_WAIT
 * @flags:    FLEXSC_WAIT_*
 * @reserved: 0
 * @idle_ns:  without work for so long, it returns -ETIME; 0: never
 * @spin_ns:  WAIT_POLL: how long it polls before it sleeps
 */
struct flexsc_wait {
	__u32 flags;
	__u32 reserved;
	__u64 idle_ns;
	__u64 spin_ns;
};

/**
 * struct flexsc_stop - argument of FLEXSC_IOC_STOP
 * @indices: address of a __u32 array: entries that were given back
 * @max:     its size; at least FLEXSC_MAX_CHAIN
 * @reserved: 0
 */
struct flexsc_stop {
	__u64 indices;
	__u32 max;
	__u32 reserved;
};

/**
 * struct flexsc_stats - argument of FLEXSC_IOC_STATS
 *
 * First what there is in the module now, over all sets, then what happened to
 * this set (0 without one), then the same of all sets since the module was
 * loaded.
 */
struct flexsc_stats {
	__u64 sets; /* registered and not released */
	__u64 calls; /* armed, queued, or in a thread's hands */
	__u64 threads; /* in WAIT */
	__u64 pages; /* of mappings */
	struct flexsc_events {
		__u64 runs; /* RUN */
		__u64 entries; /* taken from the ring */
		__u64 completed;
		__u64 armed; /* had to wait for a descriptor */
		__u64 queued; /* went to a thread */
		__u64 interrupted; /* expected to end soon, and did not */
		__u64 cancelled; /* by request */
		__u64 refused; /* not in the list of calls */
		__u64 dropped; /* malformed: never completed */
		__u64 handed_over; /* a thread that polled blocked in a call */
		__u64 spare[6];
	} set, all;
};

#define FLEXSC_IOC_MAGIC 0xfc
#define FLEXSC_IOC_REGISTER _IOWR(FLEXSC_IOC_MAGIC, 0, struct flexsc_register)
/*
 * Argument: nanoseconds to sleep, at most, until something completes, if
 * nothing has meanwhile; ~0: no limit; 0: do not sleep. Also comes back from
 * sleep for WAKE and for signals (-EINTR).
 * Returns how many calls wait for a thread and will not find an idle one.
 * lseek(2) from SEEK_SET is the same, with the argument as its offset, and is
 * cheaper: the security modules' rules for ioctl are not looked up.
 */
#define FLEXSC_IOC_RUN _IO(FLEXSC_IOC_MAGIC, 1)
/*
 * Lend the calling thread. Comes back with -EINTR (signal), -ETIME (idle),
 * -ESHUTDOWN (STOP), -ECANCELED (KICK), -EAGAIN (there are max_threads),
 * -EACCES, -EPERM.
 */
#define FLEXSC_IOC_WAIT _IOW(FLEXSC_IOC_MAGIC, 2, struct flexsc_wait)
/*
 * Argument: index of an entry whose status was changed from BUSY to CANCEL.
 * It still completes: with its own result if it had an effect, else -ECANCELED.
 * -ENOENT: it is about to complete.
 */
#define FLEXSC_IOC_CANCEL _IO(FLEXSC_IOC_MAGIC, 3)
/* Argument: a descriptor. Calls armed on it complete with -ECANCELED. */
#define FLEXSC_IOC_CLOSING _IO(FLEXSC_IOC_MAGIC, 4)
/*
 * Make the thread that sleeps in RUN, or that will, come back. So does a
 * write(2) of anything to the device; read(2) of 8 bytes takes the wish, and
 * what poll(2) says, back, or fails with -EAGAIN. So it is an eventfd, too.
 */
#define FLEXSC_IOC_WAKE _IO(FLEXSC_IOC_MAGIC, 5)
/*
 * Argument 0: engine_sleeping was cleared, the thread that polls is to look
 * again. Argument 1: threads that are in WAIT_POLL now come back (-ECANCELED).
 */
#define FLEXSC_IOC_KICK _IO(FLEXSC_IOC_MAGIC, 6)
/*
 * Take nothing any more. With an argument, calls that wait and hold no thread
 * are given back: their entries are SUBMITTED again (those of a chain with what
 * is known of their arguments, LINK on all but the last), and it is as if they
 * had just been taken from the ring; what has moved bytes completes with the
 * count. Calls in threads complete as ever. Returns how many were given back;
 * again, until it returns 0.
 */
#define FLEXSC_IOC_STOP _IOW(FLEXSC_IOC_MAGIC, 7, struct flexsc_stop)
#define FLEXSC_IOC_STATS _IOR(FLEXSC_IOC_MAGIC, 8, struct flexsc_stats)

/*
 * Not system calls: wait until the descriptor of the first argument is ready
 * for the events of the second one (as poll); the result is what it is ready
 * for. O_NONBLOCK does not matter.
 */
#define FLEXSC_NR_READY_IN 512u
#define FLEXSC_NR_READY_OUT 513u

#if defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#define FLEXSC_LAYOUT(type, field, offset)                                 \
	_Static_assert(__builtin_offsetof(struct type, field) == (offset), \
		       #type "." #field " moved")
_Static_assert(sizeof(struct flexsc_entry) == 64, "entry is a cache line");
_Static_assert(sizeof(struct flexsc_set) == 576, "set header");
FLEXSC_LAYOUT(flexsc_entry, nr, 4);
FLEXSC_LAYOUT(flexsc_entry, nr_args, 6);
FLEXSC_LAYOUT(flexsc_entry, flags, 7);
FLEXSC_LAYOUT(flexsc_entry, args, 8);
FLEXSC_LAYOUT(flexsc_entry, ret, 56);
_Static_assert(sizeof(struct flexsc_register) == 48, "register argument");
_Static_assert(sizeof(struct flexsc_wait) == 24, "wait argument");
_Static_assert(sizeof(struct flexsc_stop) == 16, "stop argument");
_Static_assert(sizeof(struct flexsc_stats) == 288, "stats argument");
FLEXSC_LAYOUT(flexsc_set, run_wanted, 40);
FLEXSC_LAYOUT(flexsc_set, nr_armed, 44);
FLEXSC_LAYOUT(flexsc_set, sq_start, 64);
FLEXSC_LAYOUT(flexsc_set, cq_start, 192);
FLEXSC_LAYOUT(flexsc_set, owner_sleeping, 320);
FLEXSC_LAYOUT(flexsc_set, engine_sleeping, 384);
FLEXSC_LAYOUT(flexsc_set, sq_head, 448);
FLEXSC_LAYOUT(flexsc_set, cq_tail, 512);
#undef FLEXSC_LAYOUT
#endif

#endif /* _UAPI_LINUX_FLEXSC_H */
