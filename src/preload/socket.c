/* SPDX-License-Identifier: MIT */
/* Names of sockets. */
#include "preload/checked.h"
#include "preload/result.h"

#include <sys/socket.h>
#include <sys/syscall.h>

FX_NEXT(accept);
FX_NEXT(accept4);
FX_NEXT(connect);
FX_NEXT(recvfrom);
FX_NEXT(recvmsg);
FX_NEXT(recvmmsg);
FX_NEXT(sendto);
FX_NEXT(sendmsg);
FX_NEXT(sendmmsg);

FX_NAME int accept(int fd, struct sockaddr *address, socklen_t *size)
{
	FX_CALL(NEXT(accept)(fd, address, size), SYS_accept, fd, (long)address,
		(long)size);
}

FX_NAME int accept4(int fd, struct sockaddr *address, socklen_t *size,
		    int flags)
{
	FX_CALL(NEXT(accept4)(fd, address, size, flags), SYS_accept4, fd,
		(long)address, (long)size, flags);
}

FX_NAME int connect(int fd, const struct sockaddr *address, socklen_t size)
{
	FX_CALL(NEXT(connect)(fd, address, size), SYS_connect, fd,
		(long)address, size);
}

FX_NAME ssize_t recvfrom(int fd, void *buf, size_t count, int flags,
			 struct sockaddr *address, socklen_t *size)
{
	FX_CALL(NEXT(recvfrom)(fd, buf, count, flags, address, size),
		SYS_recvfrom, fd, (long)buf, (long)count, flags, (long)address,
		(long)size);
}

FX_NAME ssize_t recv(int fd, void *buf, size_t count, int flags)
{
	return recvfrom(fd, buf, count, flags, NULL, NULL);
}

FX_NAME ssize_t __recv_chk(int fd, void *buf, size_t count, size_t size,
			   int flags)
{
	if (count > size)
		__chk_fail();
	return recv(fd, buf, count, flags);
}

FX_NAME ssize_t __recvfrom_chk(int fd, void *buf, size_t count, size_t size,
			       int flags, struct sockaddr *address,
			       socklen_t *address_size)
{
	if (count > size)
		__chk_fail();
	return recvfrom(fd, buf, count, flags, address, address_size);
}

FX_NAME ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
	FX_CALL(NEXT(recvmsg)(fd, message, flags), SYS_recvmsg, fd,
		(long)message, flags);
}

FX_NAME int recvmmsg(int fd, struct mmsghdr *messages, unsigned nr, int flags,
		     struct timespec *timeout)
{
	FX_CALL(NEXT(recvmmsg)(fd, messages, nr, flags, timeout), SYS_recvmmsg,
		fd, (long)messages, nr, flags, (long)timeout);
}

FX_NAME ssize_t sendto(int fd, const void *buf, size_t count, int flags,
		       const struct sockaddr *address, socklen_t size)
{
	FX_CALL(NEXT(sendto)(fd, buf, count, flags, address, size), SYS_sendto,
		fd, (long)buf, (long)count, flags, (long)address, size);
}

FX_NAME ssize_t send(int fd, const void *buf, size_t count, int flags)
{
	return sendto(fd, buf, count, flags, NULL, 0);
}

FX_NAME ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	FX_CALL(NEXT(sendmsg)(fd, message, flags), SYS_sendmsg, fd,
		(long)message, flags);
}

FX_NAME int sendmmsg(int fd, struct mmsghdr *messages, unsigned nr, int flags)
{
	FX_CALL(NEXT(sendmmsg)(fd, messages, nr, flags), SYS_sendmmsg, fd,
		(long)messages, nr, flags);
}
