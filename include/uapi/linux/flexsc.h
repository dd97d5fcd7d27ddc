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
 * locked instructions; I written once before the set is shared.
 */
#ifndef _UAPI_LINUX_FLEXSC_H
#define _UAPI_LINUX_FLEXSC_H

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
 * Submission slot, 32 bits. The owner alone produces. A consumer reads the slot at sq_head, and owns
 * what it found once it has moved sq_head past it by compare-and-swap (past
 * all of it, for a chain: the owner writes a chain's slots last to first, so
 * that the first one is proof of the others).
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
	__u64 reserved[3];
	__u64 sq_start[16];
	__u64 cq_start[16];
	__u32 owner_sleeping __attribute__((aligned(64)));
	__u32 engine_sleeping __attribute__((aligned(64)));
	__u64 sq_head __attribute__((aligned(64)));
	__u64 cq_tail __attribute__((aligned(64)));
	__u8 pad[56];
};

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
FLEXSC_LAYOUT(flexsc_set, sq_start, 64);
FLEXSC_LAYOUT(flexsc_set, cq_start, 192);
FLEXSC_LAYOUT(flexsc_set, owner_sleeping, 320);
FLEXSC_LAYOUT(flexsc_set, engine_sleeping, 384);
FLEXSC_LAYOUT(flexsc_set, sq_head, 448);
FLEXSC_LAYOUT(flexsc_set, cq_tail, 512);
#undef FLEXSC_LAYOUT
#endif

#endif /* _UAPI_LINUX_FLEXSC_H */
