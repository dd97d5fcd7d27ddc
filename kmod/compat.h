/* SPDX-License-Identifier: GPL-2.0-only */
/* What kernels from 6.1 to 6.18 call differently; nothing else is here. */
#ifndef FXK_COMPAT_H
#define FXK_COMPAT_H

#include <linux/file.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/socket.h>
#include <linux/uio.h>
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

/* A message of one buffer of user space. */
struct fxk_message {
	struct msghdr header;
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
	struct iovec vec;
#endif
};

/* @direction: READ or WRITE. Return: 0, -EFAULT. */
static inline int fxk_message_init(struct fxk_message *m, int direction,
				   void __user *buf, size_t size)
{
	m->header = (struct msghdr){ 0 };
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
	return import_single_range(direction, buf, size, &m->vec,
				   &m->header.msg_iter);
#else
	return import_ubuf(direction, buf, size, &m->header.msg_iter);
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
