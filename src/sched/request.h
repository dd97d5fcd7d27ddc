/* SPDX-License-Identifier: MIT */
/*
 * A posted call of a task, and who ends its parking: the completion, or a
 * deadline and then a cancel.
 *
 * A request lies on the task's stack, so both its completion and the notice
 * that asks for its cancel must be over before the task goes on. Both are
 * consumed by the holder of the queue it was posted on, one after the other;
 * whichever comes last wakes the task:
 *
 *	task                                holder
 *	----                                ------
 *	word = first ticket; parks          completion: word = DONE (exchange)
 *	woken by something else:              no CANCELLING: wakes the first
 *	  second ticket                     notice: DONE: wakes the second
 *	  word = second | CANCELLING (cas)          else word = second, cancels,
 *	  sends a notice; parks                     and the completion wakes it
 *	  (fails: DONE, and nobody knows
 *	  the second one: goes on)
 */
#ifndef FX_SCHED_REQUEST_H
#define FX_SCHED_REQUEST_H

#include "sched/task.h"

/* Bits below the ticket. */
#define FX_REQUEST_CANCELLING 1u /* a notice is on its way */
#define FX_REQUEST_DONE 2u

/* Key: T the task; H the holder of the queue; A both, atomically. */
struct fx_request {
	uint64_t word; /* A: the ticket to wake, and the bits above */
	fx_ticket second; /* T before the notice: ticket of the second park */
	struct fx_task *task; /* T */
	struct fx_request *next; /* T, then H: stack of notices */
	int64_t ret; /* H before DONE */
	uint32_t index; /* T */
};

/* Holder: it is complete. Return: the ticket to wake; 0: the notice will. */
static inline fx_ticket fx_request_complete(struct fx_request *request,
					    int64_t ret)
{
	uint64_t word;

	request->ret = ret;
	word = fx_exchange(&request->word, (uint64_t)FX_REQUEST_DONE);
	return fx_likely(!(word & FX_REQUEST_CANCELLING)) ? word : 0;
}

/* Holder: the notice. Return: the ticket to wake; 0: cancel it. */
static inline fx_ticket fx_request_notice(struct fx_request *request)
{
	if (fx_load_acquire(&request->word) == FX_REQUEST_DONE)
		return request->second;
	fx_store_relaxed(&request->word, request->second);
	return 0;
}

/*
 * Task: it has armed for `second`. Return: true if it is to send the notice
 * and to park; false if the call is complete.
 */
static inline bool fx_request_give_up(struct fx_request *request,
				      fx_ticket first)
{
	return fx_cas(&request->word, &first,
		      request->second | FX_REQUEST_CANCELLING);
}

#endif /* FX_SCHED_REQUEST_H */
