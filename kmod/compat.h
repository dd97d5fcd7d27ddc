/* SPDX-License-Identifier: GPL-2.0-only */
/* What kernels from 6.1 to 6.18 call differently; nothing else is here. */
#ifndef FXK_COMPAT_H
#define FXK_COMPAT_H

#include <linux/file.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/version.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
static inline void vm_flags_set(struct vm_area_struct *vma, vm_flags_t flags)
{
	vma->vm_flags |= flags;
}

static inline void vm_flags_clear(struct vm_area_struct *vma, vm_flags_t flags)
{
	vma->vm_flags &= ~flags;
}
#endif

#ifndef fd_file
#define fd_file(f) ((f).file)
#endif

static inline int fxk_dequeue_signal(sigset_t *mask, kernel_siginfo_t *info)
{
	enum pid_type type;

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 12, 0)
	return dequeue_signal(current, mask, info, &type);
#else
	return dequeue_signal(mask, info, &type);
#endif
}

/* Preempted, or blocked? For notifiers of a switch. */
static inline bool fxk_is_runnable(struct task_struct *task)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 12, 0)
	return task->on_rq;
#else
	return task_is_runnable(task);
#endif
}

#endif /* FXK_COMPAT_H */
