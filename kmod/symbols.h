/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Functions of the kernel that are not exported: the system call switch, and
 * the one that runs deferred work of a task. Called through static calls, which
 * are direct calls: safe where indirect branch tracking has sealed the
 * functions against indirect ones, and without a retpoline.
 */
#ifndef FXK_SYMBOLS_H
#define FXK_SYMBOLS_H

#include <linux/ptrace.h>
#include <linux/static_call.h>

long fxk_no_switch(const struct pt_regs *regs, unsigned int nr);
void fxk_no_work(void);

DECLARE_STATIC_CALL(fxk_x64_sys_call, fxk_no_switch);
DECLARE_STATIC_CALL(fxk_task_work_run, fxk_no_work);

/* Return: 0, or -ENOENT: this kernel cannot be served. */
int fxk_symbols_init(void);

#endif /* FXK_SYMBOLS_H */
