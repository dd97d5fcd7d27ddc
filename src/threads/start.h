/* SPDX-License-Identifier: MIT */
/*
 * Beginning, in the process and in its children. Nothing is begun before the
 * first thread is made: a program without threads is left alone.
 */
#ifndef FX_THREADS_START_H
#define FX_THREADS_START_H

/**
 * fx_threads_start - begin, once
 *
 * What it is told comes from the environment: FLEXSC_ENGINE, FLEXSC_CORES,
 * FLEXSC_QUIET. If it cannot, it says so once on standard error, and the
 * process goes on with threads of the C library alone.
 *
 * Return: whether threads can be lent.
 */
int fx_threads_start(void);

/* Do not begin in this process. Before it has threads. */
void fx_threads_never(void);

/* Leave the restartable sequences that the C library registered. */
void fx_rseq_leave(void);

/* In the child of a fork by a thread that is at home. */
void fx_threads_after_fork(void);

/*
 * The same of one that may have been made by a handler of a signal, in the
 * middle of malloc() say: nothing is given back before the next beginning.
 */
void fx_threads_after_signal_fork(void);

/* What the kernel called the thread that began: new ones inherit it. */
extern char fx_process_name[16];

#endif /* FX_THREADS_START_H */
