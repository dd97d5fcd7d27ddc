// SPDX-License-Identifier: GPL-2.0-only
/*
 * Receiving and sending; see sock.h. What the system calls do before they are
 * at the socket is: the buffer is checked, the descriptor looked up (that was
 * done), and flags of the kernel's own are taken out.
 */
#include "sock.h"

#include <linux/net.h>
#include <linux/socket.h>

#define QUIETLY (MSG_DONTWAIT | MSG_NOSIGNAL)

static s64 receive(struct socket *sock, const struct pt_regs *regs,
		   unsigned int flags)
{
	struct fxk_message m;
	int bad = fxk_message_init(&m, READ, (void __user *)regs->si, regs->dx);

	if (unlikely(bad))
		return bad;
	return sock_recvmsg(sock, &m.header, flags | QUIETLY);
}

static s64 transmit(struct socket *sock, const struct pt_regs *regs,
		    unsigned int flags)
{
	struct fxk_message m;
	int bad =
		fxk_message_init(&m, WRITE, (void __user *)regs->si, regs->dx);

	if (unlikely(bad))
		return bad;
#ifdef MSG_INTERNAL_SENDMSG_FLAGS
	flags &= ~MSG_INTERNAL_SENDMSG_FLAGS;
#endif
	m.header.msg_flags = flags | QUIETLY;
	return sock_sendmsg(sock, &m.header);
}

s64 fxk_socket_call(const struct fxk_call *call, struct socket *sock)
{
	const struct pt_regs *regs = &call->regs;

	switch (call->nr) {
	case __NR_recvfrom:
		return receive(sock, regs, regs->r10);
	case __NR_sendto:
		return transmit(sock, regs, regs->r10);
	case __NR_read:
		return receive(sock, regs, 0);
	default:
		return transmit(sock, regs, 0);
	}
}
