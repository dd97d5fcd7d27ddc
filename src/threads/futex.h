/* SPDX-License-Identifier: MIT */
/*
 * futex(2) by those who make it themselves, through syscall(): C++'s atomics
 * and static initialization, Rust, and others. Private waits are in the lot.
 */
#ifndef FX_THREADS_FUTEX_H
#define FX_THREADS_FUTEX_H

#include <stdbool.h>
#include <stdint.h>

bool fx_futex_is_ours(int operation);

/* @args: of the system call. Return: its result or -errno. */
int64_t fx_futex(const long args[6]);

#endif /* FX_THREADS_FUTEX_H */
