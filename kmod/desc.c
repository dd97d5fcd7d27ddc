// SPDX-License-Identifier: GPL-2.0-only
/*
 * Calls on descriptors. A socket is simply tried, with MSG_DONTWAIT; anything
 * else is polled first. Where another thread or process is faster in between,
 * the call blocks, the watch interrupts it, and it is armed after all.
 *
 * A blocking write ends when all is written: what is left of one is tried
 * again from the progress so far. Of a list of buffers nothing is left over
 * here: it goes to a thread unless it surely fits.
 */
#include "desc.h"

#include "arm.h"
#include "call.h"
#include "ctx.h"
#include "dispatch.h"
#include "monitor.h"
#include "ring.h"
#include "space.h"
#include "stay.h"
#include "step.h"

#include <linux/fdtable.h>
#include <linux/net.h>
#include <linux/poll.h>
#include <linux/socket.h>
#include <linux/splice.h>
#include <net/sock.h>
#include <net/tcp_states.h>

#define ERRORS (EPOLLERR | EPOLLHUP | EPOLLNVAL)
#define IN_EVENTS (EPOLLIN | EPOLLRDNORM | EPOLLRDBAND | EPOLLRDHUP | ERRORS)
#define OUT_EVENTS (EPOLLOUT | EPOLLWRNORM | EPOLLWRBAND | ERRORS)
/* Of these a receive never waits, or waits as long as a thread must. */
#define RECV_PLAIN (MSG_DONTWAIT | MSG_OOB | MSG_ERRQUEUE)
/* What a pipe takes at once when it can be written at all. */
#define PIPE_ATOMIC 4096u
/* So often what is ready may turn out not to be, others being faster. */
#define DENIALS 3

/* What to do with a call next. */
enum next {
	PLAIN, /* make it as it is */
	SURE, /* the same, but what is done may be a part */
	LOOK, /* the same if the file is ready; else arm */
	ASK, /* make it by its like that does not wait; else arm */
	THREAD,
};

struct target {
	struct file *file;
	struct socket *sock; /* or NULL */
	struct file *other; /* of a splice: what it writes to */
	bool out;
	bool wait_other; /* that is what is not ready */
	bool blocked; /* it was ready, and the call blocked all the same */
	u8 nr_denied; /* so often it was ready, and its like was not done */
};

static bool is_fifo(const struct file *file)
{
	return S_ISFIFO(file_inode(file)->i_mode);
}

/* Which argument has the flags of a socket call; NULL: none. */
static unsigned long *flags_of(struct fxk_call *call)
{
	switch (call->nr) {
	case __NR_recvmsg:
	case __NR_sendmsg:
		return &call->regs.dx;
	case __NR_recvfrom:
	case __NR_sendto:
	case __NR_recvmmsg:
	case __NR_sendmmsg:
		return &call->regs.r10;
	default:
		return NULL;
	}
}

static bool has_timeout(const struct target *t)
{
	struct sock *sk = t->sock ? t->sock->sk : NULL;

	return sk &&
	       MAX_SCHEDULE_TIMEOUT != (t->out ? READ_ONCE(sk->sk_sndtimeo) :
						 READ_ONCE(sk->sk_rcvtimeo));
}

static enum next receive(const struct target *t, u32 flags)
{
	struct sock *sk = t->sock->sk;

	if (flags & RECV_PLAIN)
		return PLAIN;
	if (sk->sk_type == SOCK_STREAM &&
	    (flags & MSG_WAITALL || READ_ONCE(sk->sk_rcvlowat) > 1))
		return THREAD;
	return ASK;
}

static enum next transmit(struct fxk_call *call, const struct target *t,
			  u32 flags)
{
	if (flags & MSG_DONTWAIT)
		return PLAIN;
	if (flags & MSG_FASTOPEN)
		return THREAD;
	if (call->nr == __NR_sendmsg && !fxk_fits_socket(call, t->sock))
		return THREAD;
	return ASK;
}

static enum next on_socket(struct fxk_call *call, const struct target *t)
{
	unsigned long *flags = flags_of(call);

	switch (call->nr) {
	case __NR_read:
		return receive(t, 0);
	case __NR_recvfrom:
	case __NR_recvmsg:
		return receive(t, *flags);
	case __NR_write:
		return transmit(call, t, 0);
	case __NR_sendto:
	case __NR_sendmsg:
		return transmit(call, t, *flags);
	case __NR_readv:
	case __NR_accept:
	case __NR_accept4:
		return LOOK;
	case __NR_writev:
		return fxk_fits_socket(call, t->sock) ? SURE : THREAD;
	case __NR_sendfile:
		return fxk_fits_socket(call, t->sock) ? PLAIN : THREAD;
	case __NR_recvmmsg:
	case __NR_sendmmsg:
		return *flags & MSG_DONTWAIT ? PLAIN : THREAD;
	case __NR_connect:
		return THREAD;
	default:
		return PLAIN;
	}
}

/* An eventfd judges the size of the buffer before it waits. */
static bool too_small(const struct fxk_call *call, const struct target *t)
{
	return call->regs.dx < 8 &&
	       !strcmp(t->file->f_path.dentry->d_iname, "[eventfd]");
}

static enum next on_stream(struct fxk_call *call, const struct target *t)
{
	bool fifo = is_fifo(t->file);

	if (too_small(call, t))
		return PLAIN;
	switch (call->nr) {
	case __NR_read:
	case __NR_readv:
	case __NR_write:
		return LOOK;
	case __NR_writev:
		return !fifo || fxk_fits_pipe(call) ? LOOK : THREAD;
	case __NR_sendfile:
		return THREAD;
	default:
		return PLAIN; /* says so itself */
	}
}

/*
 * A splice into a pipe would wait for its input with the pipe locked, and
 * everybody else who uses the pipe with it.
 */
static enum next on_splice(const struct fxk_call *call, const struct target *t)
{
	if (!t->file || !t->other || call->regs.r9 & SPLICE_F_NONBLOCK ||
	    is_fifo(t->file) || !is_fifo(t->other) ||
	    (t->file->f_flags | t->other->f_flags) & O_NONBLOCK ||
	    !file_can_poll(t->file) || fxk_is_ours(t->file) || has_timeout(t))
		return THREAD;
	return LOOK;
}

/* Calls that fail, or have nothing to move, whether it is ready or not. */
static bool does_not_wait(const struct fxk_call *call, const struct target *t)
{
	fmode_t mode = t->out ? FMODE_WRITE | FMODE_CAN_WRITE :
				FMODE_READ | FMODE_CAN_READ;

	if ((t->file->f_mode & mode) != mode)
		return true;
	switch (call->nr) {
	case __NR_read:
	case __NR_write:
		return (long)call->regs.dx <= 0;
	case __NR_readv:
	case __NR_writev:
		return !call->regs.dx;
	case __NR_accept:
	case __NR_accept4:
		return !t->sock ||
		       READ_ONCE(t->sock->sk->sk_state) != TCP_LISTEN;
	default:
		return false;
	}
}

static enum next decide(struct fxk_call *call, const struct target *t)
{
	if (call->nr == __NR_splice)
		return on_splice(call, t);
	if (!t->file || fxk_is_ours(t->file))
		return PLAIN;
	if (call->nr >= FLEXSC_NR_READY_IN)
		return LOOK;
	if (does_not_wait(call, t))
		return PLAIN;
	if (t->file->f_flags & O_NONBLOCK || !file_can_poll(t->file))
		return PLAIN;
	return t->sock ? on_socket(call, t) : on_stream(call, t);
}

static bool is_sending(const struct fxk_call *call)
{
	return call->nr == __NR_write || call->nr == __NR_sendto;
}

/* Receiving and sending that have flags have them in their own. */
static bool has_flags(const struct fxk_call *call)
{
	return call->nr == __NR_recvfrom || call->nr == __NR_sendto;
}

/* What the call becomes for one try, and back. */
static void become(struct fxk_call *call, struct fxk_like *was)
{
	struct pt_regs *regs = &call->regs;

	was->dx = regs->dx;
	was->r10 = regs->r10;
	was->ask_nr = call->nr;
	was->became = true;
	if (likely(has_flags(call))) {
		regs->r10 |= MSG_DONTWAIT | MSG_NOSIGNAL;
		return;
	}
	was->r8 = regs->r8;
	was->r9 = regs->r9;
	switch (call->nr) {
	case __NR_read:
	case __NR_write:
		was->ask_nr = call->nr == __NR_read ? __NR_recvfrom :
						      __NR_sendto;
		regs->r10 = MSG_DONTWAIT | MSG_NOSIGNAL;
		regs->r8 = regs->r9 = 0;
		break;
	default:
		*flags_of(call) |= MSG_DONTWAIT | MSG_NOSIGNAL;
	}
}

static void become_again(struct fxk_call *call, const struct fxk_like *was)
{
	struct pt_regs *regs = &call->regs;

	regs->dx = was->dx;
	regs->r10 = was->r10;
	if (likely(has_flags(call)))
		return;
	regs->r8 = was->r8;
	regs->r9 = was->r9;
}

/* Its descriptor was closed, or is another file's by now. */
static s64 dispatch_elsewhere(struct fxk_runner *r, struct fxk_call *call,
			      unsigned int nr)
{
	unsigned long was = call->regs.di;
	int fd;
	s64 ret;

	if (!(r->ctx->flags & FLEXSC_REG_KEEP_FILES))
		return -ECANCELED;
	fd = get_unused_fd_flags(O_CLOEXEC);
	if (fd < 0)
		return fd;
	fd_install(fd, get_file(call->file));
	call->regs.di = fd;
	ret = fxk_dispatch(r, &call->regs, nr);
	call->regs.di = was;
	close_fd(fd);
	return ret;
}

s64 fxk_dispatch_fd(struct fxk_runner *r, struct fxk_call *call,
		    unsigned int nr)
{
	struct fd f;
	bool same;

	if (likely(!call->file))
		return fxk_dispatch(r, &call->regs, nr);
	f = fdget(call->regs.di);
	same = fd_file(f) == call->file;
	fdput(f);
	return same ? fxk_dispatch(r, &call->regs, nr) :
		      dispatch_elsewhere(r, call, nr);
}

static __poll_t wanted(const struct fxk_call *call, bool out)
{
	if (call->nr >= FLEXSC_NR_READY_IN)
		return ERRORS | (__force __poll_t)(u16)call->regs.si;
	return out ? OUT_EVENTS : IN_EVENTS;
}

static bool is_list(const struct fxk_call *call)
{
	return call->nr == __NR_sendmsg || call->nr == __NR_writev;
}

/* Some of a write was done. Return: false: that was all of it. */
static bool advance(struct fxk_call *call, s64 ret)
{
	struct pt_regs *regs = &call->regs;

	call->done += ret;
	if (is_list(call)) {
		call->thread = true;
		return true;
	}
	regs->si += ret;
	regs->dx -= ret;
	return regs->dx;
}

/* Is what came back only a part of what a blocking write has to do? */
static bool is_part(struct fxk_runner *r, const struct fxk_call *call,
		    const struct target *t, s64 ret)
{
	if (ret <= 0 || !t->out || !t->file)
		return false;
	if (is_list(call))
		return (!t->sock || t->sock->sk->sk_type == SOCK_STREAM) &&
		       fxk_more_than(call, ret);
	if (!is_sending(call))
		return false;
	if ((unsigned long)ret >= call->regs.dx)
		return false;
	/* Of anything else if we are why it stopped there. */
	return t->sock ? t->sock->sk->sk_type == SOCK_STREAM :
			 is_fifo(t->file) || READ_ONCE(r->hurried);
}

/* Writes to pipes go in pieces that cannot block. */
static s64 dispatch_piece(struct fxk_runner *r, struct fxk_call *call,
			  const struct target *t)
{
	unsigned long all = call->regs.dx;
	bool piece = call->nr == __NR_write && all > PIPE_ATOMIC && !t->sock &&
		     is_fifo(t->file);
	s64 ret;

	if (piece)
		call->regs.dx = PIPE_ATOMIC;
	ret = fxk_dispatch_fd(r, call, call->nr);
	call->regs.dx = all;
	return ret;
}

enum outcome {
	OVER,
	NOT_READY,
	PART, /* more to do */
	BLOCKS, /* for longer than it may here, though it is ready */
};

static enum outcome try_splice(struct fxk_runner *r, struct fxk_call *call,
			       struct target *t, s64 *ret)
{
	unsigned long flags = call->regs.r9;

	t->wait_other = !(vfs_poll(t->other, NULL) & OUT_EVENTS);
	if (t->wait_other)
		return NOT_READY;
	call->regs.r9 |= SPLICE_F_NONBLOCK;
	*ret = fxk_dispatch(r, &call->regs, call->nr);
	call->regs.r9 = flags;
	return *ret == -EAGAIN ? NOT_READY : OVER;
}

/* Its like that does not wait. */
static s64 ask(struct fxk_runner *r, struct fxk_call *call,
	       const struct target *t)
{
	struct fxk_like was;
	s64 ret;

	if (fxk_is_socket_call(call)) {
		if (call->file && !(r->ctx->flags & FLEXSC_REG_KEEP_FILES) &&
		    !fxk_is_open(call))
			return -ECANCELED;
		return fxk_dispatch_socket(r, call, t->sock);
	}
	become(call, &was);
	ret = fxk_dispatch_fd(r, call, was.ask_nr);
	become_again(call, &was);
	/* Another thread put another file there. */
	if (unlikely(ret == -ENOTSOCK && was.ask_nr != call->nr))
		return -EAGAIN;
	return ret;
}

static enum outcome try(struct fxk_runner *r, struct fxk_call *call,
			struct target *t, enum next next, s64 *ret)
{
	if (next == LOOK) {
		__poll_t ready = vfs_poll(t->file, NULL) & wanted(call, t->out);

		t->wait_other = false;
		if (!ready)
			return NOT_READY;
		if (call->nr == __NR_splice)
			return try_splice(r, call, t, ret);
		if (t->blocked)
			return BLOCKS;
		if (call->nr >= FLEXSC_NR_READY_IN) {
			*ret = (__force s64)ready;
			return OVER;
		}
		*ret = dispatch_piece(r, call, t);
	} else if (next == ASK) {
		if (call->denied) {
			call->denied = false;
			return NOT_READY;
		}
		*ret = ask(r, call, t);
		if (*ret == -EAGAIN)
			return NOT_READY;
	} else {
		*ret = fxk_dispatch_fd(r, call, call->nr);
	}
	return next != PLAIN && is_part(r, call, t, *ret) ? PART : OVER;
}

/* It may have waited for the other one before. */
static void drop_file_of_splice(struct fxk_call *call)
{
	if (call->nr != __NR_splice || !call->file)
		return;
	fput(call->file);
	call->file = NULL;
}

/* Arm it. true: *step is what became of it; false: try again. */
static bool wait_for(struct fxk_runner *r, struct fxk_call **call,
		     const struct target *t, s64 *ret, enum fxk_step *step)
{
	struct fxk_call *away;

	*step = FXK_DONE;
	if (has_timeout(t) && (*call)->nr < FLEXSC_NR_READY_IN) {
		*step = fxk_to_thread(r, *call, ret);
		return true;
	}
	away = fxk_call_away(r, *call);
	if (IS_ERR(away)) {
		*ret = PTR_ERR(away);
		return true;
	}
	*call = away;
	away->fd = t->wait_other ? away->regs.dx : away->regs.di;
	away->events = wanted(away, t->out || t->wait_other);
	drop_file_of_splice(away);
	switch (fxk_arm(r, away, t->wait_other ? t->other : t->file)) {
	case FXK_ARM_GONE:
		*step = FXK_GONE;
		return true;
	case FXK_ARM_THREAD:
		*step = fxk_to_thread(r, away, ret);
		return true;
	case FXK_ARM_READY:
		break;
	}
	if (READ_ONCE(away->cancelled) || READ_ONCE(r->ctx->dead)) {
		*step = fxk_end(away, ret);
		return true;
	}
	return false;
}

static enum fxk_step finish(struct fxk_call *call, s64 *ret)
{
	if (call->done > 0)
		*ret = *ret > 0 ? call->done + *ret : call->done;
	return FXK_DONE;
}

/* The watch interrupted it. */
static void note_blocked(struct fxk_runner *r, struct target *t)
{
	if (!READ_ONCE(r->hurried))
		return;
	WRITE_ONCE(r->hurried, false);
	t->blocked = true;
}

/*
 * Poll says ready for ever, and what does not wait says that it would: a UDP
 * socket that was shut down is such, which only a call that waits tells of.
 */
static enum next insist(enum next next, const struct fxk_call *call,
			const struct target *t)
{
	if (likely(t->nr_denied < DENIALS))
		return next;
	return next == ASK && call->nr != __NR_splice ? LOOK : THREAD;
}

static enum fxk_step go_on(struct fxk_runner *r, struct fxk_call **call,
			   struct target *t, s64 *ret)
{
	enum fxk_step step;

	for (;;) {
		enum next next = insist(decide(*call, t), *call, t);

		if (next == THREAD || (*call)->thread)
			return fxk_to_thread(r, *call, ret);
		switch (try(r, *call, t, next, ret)) {
		case NOT_READY:
			t->blocked = false;
			if (wait_for(r, call, t, ret, &step))
				return step;
			t->nr_denied++;
			if (signal_pending(current) &&
			    fxk_interrupted(r, *call, ret, &step))
				return step;
			continue;
		case PART:
			t->nr_denied = 0;
			note_blocked(r, t);
			if (advance(*call, *ret))
				continue;
			*ret = 0;
			return finish(*call, ret);
		case BLOCKS:
			return fxk_to_thread(r, *call, ret);
		case OVER:
			break;
		}
		if (likely(!fxk_is_restart(*ret) && !fxk_hurried(r, *ret)))
			return finish(*call, ret);
		/* Lost a race for what was ready: that can be waited for. */
		if (next == LOOK && READ_ONCE(r->hurried) &&
		    !fxk_cancel_wanted(r->ctx, (*call)->index)) {
			note_blocked(r, t);
			continue;
		}
		if (fxk_interrupted(r, *call, ret, &step))
			return step;
	}
}

/* Flags of a call that can be made the usual way: others have a meaning. */
static bool is_usual(const struct fxk_call *call, const struct sock *sk)
{
	u32 flags = has_flags(call) ? call->regs.r10 : 0;

	return !(flags & ~(MSG_NOSIGNAL | MSG_PEEK | MSG_TRUNC | MSG_MORE)) &&
	       (sk->sk_type != SOCK_STREAM || READ_ONCE(sk->sk_rcvlowat) <= 1);
}

/*
 * It waited the last time: most probably it will again, so it is armed without
 * a try.
 */
static enum fxk_quick quick_wait(struct fxk_runner *r, struct file *file,
				 const struct sock *sk, u32 index)
{
	struct fxk_call *call = &r->now;

	if (READ_ONCE(sk->sk_rcvtimeo) != MAX_SCHEDULE_TIMEOUT)
		return FXK_QUICK_NOT;
	call->index = index;
	call->flags = 0;
	call->done = 0;
	call->thread = call->denied = false;
	call = fxk_call_away(r, call);
	if (IS_ERR(call))
		return FXK_QUICK_NOT;
	call->fd = call->regs.di;
	call->events = IN_EVENTS;
	if (fxk_arm(r, call, file) == FXK_ARM_GONE)
		WRITE_ONCE(r->current_entry, FXK_NO_ENTRY);
	else
		fxk_go(r, call, false);
	return FXK_QUICK_GONE;
}

/* Calls that surely take or give bytes. */
static enum fxk_quick quick_on_socket(struct fxk_runner *r, struct file *file,
				      u32 index)
{
	struct socket *sock = file->private_data;
	struct fxk_like *was = &r->was;
	struct fxk_call *call = &r->now;
	s64 ret;

	if ((long)call->regs.dx <= 0 && !has_flags(call))
		return FXK_QUICK_NOT;
	if (!is_usual(call, sock->sk))
		return FXK_QUICK_NOT;
	was->stream = sock->sk->sk_type == SOCK_STREAM;
	if (unlikely(!fxk_is_socket_call(call))) {
		become(call, was);
		return FXK_QUICK_ASK;
	}
	if (!is_sending(call) && fxk_waited(r->ctx, call->regs.di, sock->sk))
		return quick_wait(r, file, sock->sk, index);
	was->became = false;
	was->ret = ret = fxk_socket_call(call, sock);
	return likely(ret >= 0 && (!was->stream || !is_sending(call) ||
				   ret == call->regs.dx)) ?
		       FXK_QUICK_OVER :
		       FXK_QUICK_MADE;
}

static __always_inline enum fxk_quick
quick_on_file(struct fxk_runner *r, struct file *file, u32 index)
{
	if (!file || !file->f_op->poll)
		return FXK_QUICK_PLAIN;
	if (!S_ISSOCK(file_inode(file)->i_mode) || file->f_flags & O_NONBLOCK)
		return FXK_QUICK_NOT;
	/* Sockets have nothing else there. */
	return quick_on_socket(r, file, index);
}

enum fxk_quick fxk_quick(struct fxk_runner *r, u32 index)
{
	struct files_struct *files = current->files;
	enum fxk_quick quick;
	struct fd f;

	/* Nobody else can close it: as fdget() does, without the call. */
	if (likely(atomic_read(&files->count) == 1))
		return quick_on_file(
			r, files_lookup_fd_raw(files, r->now.regs.di), index);
	f = fdget(r->now.regs.di);
	quick = quick_on_file(r, fd_file(f), index);
	if (fd_file(f))
		fdput(f);
	return quick;
}

bool fxk_quick_done(struct fxk_call *call, const struct fxk_like *was, s64 ret)
{
	bool part = is_sending(call) && ret >= 0 && was->stream &&
		    (unsigned long)ret < call->regs.dx;

	if (unlikely(was->became))
		become_again(call, was);
	call->done = 0;
	call->denied = ret == -EAGAIN;
	if (likely(ret >= 0 && !part))
		return true;
	if (part)
		advance(call, ret);
	else if (!call->denied && ret != -ENOTSOCK && !fxk_is_restart(ret) &&
		 ret != -EINTR)
		return true;
	return false;
}

bool fxk_resume(struct fxk_runner *r, struct fxk_call *call, s64 *ret)
{
	struct file *file = call->file;
	struct socket *sock;

	if (!file || call->next || call->thread || call->done ||
	    READ_ONCE(call->cancelled) ||
	    (call->nr != __NR_recvfrom && call->nr != __NR_read) ||
	    !S_ISSOCK(file_inode(file)->i_mode) || file->f_flags & O_NONBLOCK)
		return false;
	sock = file->private_data;
	if (!fxk_is_socket_call(call) || !is_usual(call, sock->sk) ||
	    fxk_watched() || fxk_cancel_wanted(r->ctx, call->index))
		return false;
	if (!(r->ctx->flags & FLEXSC_REG_KEEP_FILES) && !fxk_is_open(call))
		return false;
	*ret = fxk_dispatch_socket(r, call, sock);
	call->denied = *ret == -EAGAIN;
	return !call->denied && !fxk_is_restart(*ret) && *ret != -EINTR;
}

enum fxk_step fxk_fd(struct fxk_runner *r, struct fxk_call **at, bool out,
		     s64 *ret)
{
	struct fxk_call *call = *at;
	struct target t = { .out = out };
	struct fd f = { 0 }, other = { 0 };
	enum fxk_step step;

	drop_file_of_splice(call);
	t.file = call->file;
	if (call->nr == __NR_splice) {
		other = fdget(call->regs.dx);
		t.other = fd_file(other);
	}
	if (!t.file) {
		f = fdget(call->regs.di);
		t.file = fd_file(f);
	} else {
		get_file(t.file); /* the call may be gone before we are */
	}
	if (t.file)
		t.sock = sock_from_file(t.file);
	/* It would have waited; another runner's close came between. */
	if (!t.file && call->denied)
		return fxk_end(call, ret);
	if (!t.file && call->nr >= FLEXSC_NR_READY_IN) {
		*ret = -EBADF;
		return FXK_DONE;
	}
	step = go_on(r, at, &t, ret);
	fdput(other);
	if (fd_file(f))
		fdput(f);
	else if (t.file)
		fput(t.file);
	return step;
}
