/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Receiving and sending on a socket that was looked up already: what
 * recvfrom(2) and sendto(2) without an address do, and read(2) and write(2)
 * with them.
 */
#ifndef FXK_SOCK_H
#define FXK_SOCK_H

#include "fxk.h"

struct socket;

/* Can it be made this way? An address it must not have. */
static inline bool fxk_is_socket_call(const struct fxk_call *call)
{
	switch (call->nr) {
	case __NR_read:
	case __NR_write:
		return true;
	case __NR_recvfrom:
	case __NR_sendto:
		return !call->regs.r8;
	default:
		return false;
	}
}

/**
 * fxk_socket_call - receive or send, without waiting and without SIGPIPE
 * @call: fxk_is_socket_call(); of bytes, if it is a read or a write
 * @sock: of its descriptor; the file is the caller's to hold
 *
 * Security modules, limits and accounting see what they see of the system
 * call. Context: process. Return: as the system call; -EAGAIN: it would wait.
 */
s64 fxk_socket_call(const struct fxk_call *call, struct socket *sock);

#endif /* FXK_SOCK_H */
