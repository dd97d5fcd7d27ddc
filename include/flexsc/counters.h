/* SPDX-License-Identifier: MIT */
/*
 * Counters of one owner (a loop, later a run queue), in shared memory for
 * observers. Each line of fields has one writer, which uses plain additions:
 * no locked instruction. A reader may see fields of different moments, but
 * never a torn one. Values only grow and start at 0.
 *
 * The mapping is a memfd: "/memfd:flexsc-counters" in /proc/PID/maps. Whoever
 * may trace the process reads it with process_vm_readv(2), or through
 * /proc/PID/map_files with the right to do that, and checks magic, version
 * and size first.
 */
#ifndef FLEXSC_COUNTERS_H
#define FLEXSC_COUNTERS_H

#include <stdint.h>

#define FLEXSC_COUNTERS_MAGIC 0x746e4346u /* "FCnt" */
#define FLEXSC_COUNTERS_VERSION 1
#define FLEXSC_COUNTERS_CALLS 512

/**
 * struct flexsc_counters
 * @magic, @version, @size: what this is; size is sizeof the writer's struct
 * @pid, @tid: the owner when the loop was made
 * @engine: name of the engine in use, NUL-terminated
 * @trace: address of the library's struct flexsc_trace; 0: none
 *
 * Written by the owner's thread:
 * @completed: calls whose result was delivered
 * @at_once: finished without an entry
 * @parked: waited for a descriptor
 * @queued: waited for an entry at the limit
 * @cancelled: ended by a cancel or a time-out
 * @chains: chains posted
 * @handed_over: given to a syscall thread because they could block
 * @fallbacks: given to a thread though the engine usually has a way
 * @helped: run by the owner while it had nothing else to do
 * @batches: rounds of the loop that reaped at least one completion
 * @batch_calls: completions in those rounds
 * @sleeps: times the owner slept in the kernel
 * @spins: times it polled first
 * @timers: timers that ran
 * @reverified: registrations looked at again after a long wait
 * @ring_calls: crossings into the kernel for the ring (engine uring), to
 *              submit or to collect
 * @stalls: times a round found all syscall threads busy and work waiting
 * @core_starts: times a polling syscall thread was started
 * @calls: postings by system call number, chains counted by their calls
 *
 * Written by the syscall threads, under the lock of their pool:
 * @threads: syscall threads alive
 * @threads_most: the most there have been
 *
 * Written by the polling syscall thread (engine uthread):
 * @core_calls: calls it carried out
 * @core_sleeps: times it slept
 */
struct flexsc_counters {
	uint32_t magic;
	uint32_t version;
	uint32_t size;
	uint32_t pid;
	uint32_t tid;
	char engine[12];
	uint64_t trace;
	uint64_t reserved[3];

	uint64_t completed;
	uint64_t at_once;
	uint64_t parked;
	uint64_t queued;
	uint64_t cancelled;
	uint64_t chains;
	uint64_t handed_over;
	uint64_t fallbacks;
	uint64_t helped;
	uint64_t batches;
	uint64_t batch_calls;
	uint64_t sleeps;
	uint64_t spins;
	uint64_t timers;
	uint64_t reverified;
	uint64_t stalls;
	uint64_t ring_calls;
	uint64_t core_starts;
	uint64_t owner_reserved[6];

	uint64_t threads;
	uint64_t threads_most;
	uint64_t threads_reserved[6];

	uint64_t core_calls;
	uint64_t core_sleeps;
	uint64_t core_reserved[6];

	uint64_t calls[FLEXSC_COUNTERS_CALLS];
};

#endif /* FLEXSC_COUNTERS_H */
