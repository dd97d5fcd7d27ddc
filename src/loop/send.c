/* SPDX-License-Identifier: MIT */
/*
 * What other threads may do to a loop: send it an event, stop it. Events come
 * on a stack that the loop takes whole; only the first sender since then
 * interrupts the loop's sleep.
 */
#include "loop/loop.h"

#include <errno.h>

static void interrupt(struct flexsc_loop *loop)
{
	if (fx_exchange(&loop->interrupted, 1u) == 0)
		loop->owner.engine->ops->interrupt(loop->owner.engine);
}

int flexsc_loop_send(struct flexsc_loop *loop, struct flexsc_event *ev)
{
	struct flexsc_event *head = fx_load_relaxed(&loop->sent);
	uint16_t idle = FX_EVENT_IDLE;

	if (loop->broken)
		return -ENOMEM;
	if (!fx_cas(&ev->state_, &idle, (uint16_t)FX_EVENT_SENT))
		return -EBUSY;
	ev->loop_ = loop;
	do {
		ev->next_ = head;
	} while (!fx_cas(&loop->sent, &head, ev));
	interrupt(loop);
	return 0;
}

void fx_loop_receive(struct flexsc_loop *loop)
{
	struct flexsc_event *stack, *in_order = NULL;

	/* First the flag: a sender after this interrupts again. */
	fx_exchange(&loop->interrupted, 0u);
	stack = fx_exchange(&loop->sent, NULL);
	while (stack) {
		struct flexsc_event *ev = stack;

		stack = ev->next_;
		ev->next_ = in_order;
		in_order = ev;
	}
	while (in_order) {
		struct flexsc_event *ev = in_order;

		in_order = ev->next_;
		loop->waiting++;
		fx_loop_ready(loop, ev, 0);
	}
}

void flexsc_loop_stop(struct flexsc_loop *loop)
{
	fx_store_release(&loop->stop, 1u);
	if (!loop->broken)
		interrupt(loop);
}
