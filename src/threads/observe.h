/* SPDX-License-Identifier: MIT */
/* Showing the process to observers: see <flexsc/observe.h>. */
#ifndef FX_THREADS_OBSERVE_H
#define FX_THREADS_OBSERVE_H

/*
 * When carriers run; again after a fork. Without memory for it there is just
 * nothing to be seen.
 */
void fx_observe_start(void);

/* Instead: the process runs without carriers, for this reason. */
void fx_observe_declined(const char *why);

/* In the child of a fork: what is shown is the parent's. */
void fx_observe_after_fork(void);

#endif /* FX_THREADS_OBSERVE_H */
