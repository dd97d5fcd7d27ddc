/* SPDX-License-Identifier: MIT */
/*
 * What a process on FlexSC-Threads shows to observers: where its user threads,
 * queues and carriers are in its memory, and where in their records what an
 * observer asks for. The process does nothing else for observers, and never
 * waits for one: who may trace it reads its memory, process_vm_readv(2), or
 * looks into its core file, and must expect that what it reads has changed
 * between two reads.
 *
 * The mapping is a memfd: "/memfd:flexsc-process" in /proc/PID/maps. It is also
 * what the library's symbol `flexsc_process` points to. Check magic, version
 * and size first.
 *
 * An offset is in bytes, from the beginning of the record. All addresses are
 * the process's own. Counters only grow.
 */
#ifndef FLEXSC_OBSERVE_H
#define FLEXSC_OBSERVE_H

#include <stdint.h>

#define FLEXSC_PROCESS_MAGIC 0x72504346u /* "FCPr" */
#define FLEXSC_PROCESS_VERSION 1

/* The low byte of a thread's state word. */
enum flexsc_thread_state {
	FLEXSC_THREAD_RUNNING, /* or ready, after it has given way */
	FLEXSC_THREAD_PARKING,
	FLEXSC_THREAD_PARKED,
	FLEXSC_THREAD_PARKED_AT_HOME, /* on its own kernel thread */
	FLEXSC_THREAD_READY
};

/* Lowest bit of @on: it is the address of a posted call. */
#define FLEXSC_ON_CALL 1u

/**
 * struct flexsc_thread_layout - the record of a user thread
 * @next: uint64_t, address of the next record; the last one's is its own
 * @tid: int32_t, its own kernel thread; 0: the record is not in use
 * @state: uint64_t; low byte: enum flexsc_thread_state; it changes with each
 *         parking, so what was read between two equal values is of one parking
 * @carrier: uint64_t, the carrier that runs it or ran it last; 0: at home
 * @where: uint64_t, address of a string that ends in NUL: what it is parked for;
 *         "idle": it has ended, and is kept for the next creation
 * @since_ms: uint32_t, CLOCK_MONOTONIC_COARSE in ms when it parked
 * @on: uint64_t, the object it is parked for; with FLEXSC_ON_CALL the
 *      struct flexsc_entry of <linux/flexsc.h> that it has posted; 0: none
 * @cpu_ns: uint64_t, processor time on carriers, if somebody has asked for it
 * @stays: uint8_t, index into the reasons: why it never leaves home; 0: it does
 * @sp: uint64_t, stack pointer while parked; it goes on at @parked_pc of struct
 *      flexsc_process
 * @tls: uint64_t, its thread pointer
 */
struct flexsc_thread_layout {
	uint16_t next, tid, state, carrier, where, since_ms, on, cpu_ns, stays,
		sp, tls;
	uint16_t reserved[5];
};

/**
 * struct flexsc_queue_layout - the record of a run queue
 * @cpu: int32_t, its processor, or -1
 * @sleeping: uint32_t, its carrier sleeps, or is about to
 * @rests: uint32_t, its carrier was sent to rest: the load does without it
 * @holder: uint64_t, the record of the carrier that holds it
 * @head, @tail: uint64_t each; what lies between is ready to run
 * @counters: uint64_t, address of the struct flexsc_counters of its calls
 * @counts: uint64_t each, named by queue_counts of struct flexsc_process
 */
struct flexsc_queue_layout {
	uint16_t cpu, sleeping, rests, holder, head, tail, counters, counts;
	uint16_t reserved[8];
};

/**
 * struct flexsc_carrier_layout - the record of a carrier, a kernel thread
 * @next: uint64_t, address of the next one; 0: none
 * @tid: int32_t
 * @queue: uint64_t, the queue that it holds
 * @switches: uint32_t, between tasks, so far
 * @lost: uint32_t, not 0: its queue was given to another one, or is about to
 */
struct flexsc_carrier_layout {
	uint16_t next, tid, queue, switches, lost;
	uint16_t reserved[11];
};

/**
 * struct flexsc_process - where everything is
 * @version, @size, @pid: what this is; pid as the process sees itself
 * @threads: address of the pointer to the first record of a user thread
 * @queues, @nr_queues: address of an array of pointers to records
 * @carriers: address of the pointer to the first record of a carrier
 * @thread_counts: address of so many uint64_t as thread_count_names has names
 * @homes, @reasons, @nr_reasons: goings home by reason: address of a uint64_t
 *              each, and of pointers to their names, NULL where there is none
 * @parked_pc: where a parked thread goes on
 * @lend_begin, @lend_end: the function in which the kernel thread of a user
 *              thread waits while that is on carriers, or parked
 * @declined: not empty: why the process runs without FlexSC-Threads, though the
 *            library is in it; there is nothing else to be seen then
 * @queue_count_names, @thread_count_names: names in the order of the values,
 *              separated by spaces
 */
struct flexsc_process {
	uint32_t magic, version, size, pid;
	uint64_t threads;
	uint64_t queues;
	uint64_t carriers;
	uint64_t thread_counts;
	uint64_t homes, reasons;
	uint64_t parked_pc;
	uint32_t nr_queues, nr_reasons;
	uint64_t lend_begin, lend_end;
	uint64_t reserved[6];
	struct flexsc_thread_layout thread;
	struct flexsc_queue_layout queue;
	struct flexsc_carrier_layout carrier;
	char queue_count_names[512];
	char thread_count_names[128];
	char declined[128];
};

#endif /* FLEXSC_OBSERVE_H */
