/* SPDX-License-Identifier: MIT */
/*
 * Calls of a process, as they happen: what `flexsc trace` shows, and how long
 * they take by number. Nothing is recorded, and next to nothing paid, until an
 * observer asks for it.
 *
 * Where. Each library that makes calls (libflexsc, libflexsc-threads) has one
 * struct flexsc_trace in the process; struct flexsc_counters says its address.
 * Observers read by process_vm_readv(2) and write what they want by
 * process_vm_writev(2). A process that is started with FLEXSC_TRACE in its
 * environment has it in a file of the observer's, struct flexsc_trace_file, so
 * that what it recorded outlives it; one that runs is offered such a file for its
 * rings, which it may be unable to open, and then has them in its memory.
 *
 * Asking. An observer sets bits of `calls`, and `bytes` if it wants more, then
 * `trace_until_ms` (or `latency_until_ms`) to a moment soon, and last the word at
 * the address `wanted` to 1, and does so again, in that order, while it wants
 * more. Who records looks at the time; when it is over he clears the word, and
 * then looks at the time once more, so that an observer that came meanwhile is
 * not forgotten. An observer that is killed leaves nothing behind.
 *
 * Rings. A record is written into one of several rings, by who gets the lock of
 * one at the first try; if all are taken it is dropped and counted. Nobody ever
 * waits, for an observer neither: old records are written over. In a ring,
 *
 *	writer, holding the lock          observer
 *	------------------------          --------
 *	reserved = end of what it         reads `end`
 *	  may write at most               copies what lies before it
 *	writes the record                 reads `reserved`: what was copied from
 *	end = end of the record             before flexsc_trace_oldest(reserved)
 *	                                    may be something else, and is lost
 *
 * Positions are bytes and only grow; a record lies at its position modulo the
 * size of the ring, and in one block, which begins with a record. Records
 * are numbered, so it is known how many were lost.
 */
#ifndef FLEXSC_TRACE_H
#define FLEXSC_TRACE_H

#include <stdint.h>

#define FLEXSC_TRACE_MAGIC 0x63725446u /* "FTrc" */
#define FLEXSC_TRACE_VERSION 1
#define FLEXSC_TRACE_BLOCK (256u << 10)
#define FLEXSC_TRACE_RING (4 * FLEXSC_TRACE_BLOCK)
#define FLEXSC_TRACE_MAX_RINGS 16
#define FLEXSC_TRACE_MAX_RECORD 16384
#define FLEXSC_TRACE_MAX_BYTES 4096 /* of one buffer */
#define FLEXSC_TRACE_CALLS 512
/* An observer asks for so long; it asks again well before. */
#define FLEXSC_TRACE_LEASE_MS 3000

/* Key: W who holds the lock; I constant. */
struct flexsc_trace_ring {
	uint32_t lock; /* W by compare-and-swap */
	uint32_t unused;
	uint64_t reserved; /* W */
	uint64_t end; /* W */
	uint64_t nr; /* W: records so far */
	uint64_t data; /* I: address of FLEXSC_TRACE_RING bytes */
	uint64_t pad[3];
};

/* How long calls of a number took; bucket i: below 2^(i+7) ns, the last: more. */
#define FLEXSC_TRACE_BUCKETS 28

struct flexsc_trace_latency {
	uint64_t nr, ns, most_ns, errors;
	uint64_t bucket[FLEXSC_TRACE_BUCKETS];
};

/**
 * struct flexsc_trace - what a library has for observers
 * @magic, @version, @size, @pid: what this is; pid as the process sees itself
 * @self: its own address in the process
 * @wanted: address of a uint32_t, not 0 while anybody wants something
 * @trace_until_ms, @latency_until_ms: of CLOCK_MONOTONIC, low half of ms; 0: never
 * @bytes: how many of a buffer are recorded, at least 32
 * @follow: children of fork record, too, from their beginning on
 * @calls: bit n: calls of that number
 * @rings: address of @nr_rings rings, 0 until the first record
 * @latencies: address of FLEXSC_TRACE_CALLS struct flexsc_trace_latency; 0: none
 * @dropped: records for which no ring was free
 * @lapses: how often nobody wanted anything any more
 * @filtered: not 0: there is a filter of system calls, which may forbid copying
 *            what arguments point at; it is not tried
 * @pid_namespace: whose numbers @pid and those of threads are, by its inode;
 *            0: not known
 * @offer_pid, @offer_fd: an observer's file, /proc/PID/fd/N, for the rings, if
 *            nobody else was asking; 0: none
 * @slot_pid, @slot_fd, @slot: the file and the slot of it, from 1 on, in which
 *            they are; 0: in the memory of the process
 */
struct flexsc_trace {
	uint32_t magic, version, size, pid;
	uint64_t self;
	uint64_t wanted;
	uint32_t trace_until_ms, latency_until_ms;
	uint32_t bytes, follow;
	uint64_t calls[FLEXSC_TRACE_CALLS / 64];
	uint64_t rings;
	uint64_t latencies;
	uint32_t nr_rings, lapses;
	uint64_t dropped;
	uint32_t filtered, pid_namespace;
	uint32_t offer_pid, offer_fd;
	uint32_t slot_pid, slot_fd, slot, unused;
};

enum flexsc_trace_kind {
	FLEXSC_TRACE_SKIP, /* nothing, up to the next block */
	FLEXSC_TRACE_BEGIN, /* a call is about to be made, or posted */
	FLEXSC_TRACE_END, /* its result is known */
	FLEXSC_TRACE_CANCEL, /* it was asked to end */
	FLEXSC_TRACE_SIGNAL, /* a handler is about to be called */
	FLEXSC_TRACE_EXIT /* the thread, or the process, is about to end */
};

/**
 * struct flexsc_trace_record - one of them; its parts follow
 * @size: with parts, a multiple of 8
 * @kind: enum flexsc_trace_kind; of SKIP only @size and this are there
 * @nr: of the call; SIGNAL: of the signal; EXIT: exit, or exit_group
 * @number: of the record, in its ring
 * @at_ns: CLOCK_MONOTONIC
 * @id: of a posted call, between its two records; 0: the thread waits for it
 * @tid: of the user thread, or of the loop's thread, as the process sees it
 * @results: BEGIN, bit i: argument i will be the result of an earlier call
 * @ret: END: the result, or -errno
 * @begun_ns: END: when it began; 0: not known
 * @args: of the call; SIGNAL: how siginfo_t begins; EXIT: status
 */
struct flexsc_trace_record {
	uint32_t size;
	uint16_t kind, nr;
	uint64_t number;
	uint64_t at_ns;
	uint64_t id;
	int32_t tid;
	uint32_t results;
	int64_t ret;
	uint64_t begun_ns;
	uint64_t args[6];
};

/* What was at an address, when it was recorded; padded to 8 bytes. */
struct flexsc_trace_part {
	uint64_t address;
	uint32_t size;
	uint32_t argument; /* 0 to 5 */
};

/* In FLEXSC_TRACE: this, the path of the file (/proc/PID/fd/N). */
#define FLEXSC_TRACE_FILE_NAME "/memfd:flexsc-trace-file"

/*
 * Begins the file. Behind it, at multiples of @slot_size, lie slots; a library
 * takes the next one for its struct flexsc_trace, rings and latencies.
 */
struct flexsc_trace_file {
	uint32_t magic, version;
	uint32_t pid; /* only this one, as it sees itself; 0: any */
	uint32_t nr_slots;
	uint64_t slot_size;
	uint32_t next; /* taken so far, by atomic addition */
	uint32_t nr_rings; /* of a slot */
	struct flexsc_trace first; /* what a new one begins with */
};

/* Where what was copied from a ring can be trusted from, if it is of a block. */
static inline uint64_t flexsc_trace_oldest(uint64_t reserved, uint64_t ring)
{
	return reserved > ring ? reserved - ring : 0;
}

#endif /* FLEXSC_TRACE_H */
