/* SPDX-License-Identifier: MIT */
/*
 * Socket calls over TCP, UDP and unix sockets, passing descriptors, several
 * messages at once, and sendfile to a slow reader: made plainly and posted,
 * with the same outcomes.
 */
#define _GNU_SOURCE
#include "harness.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>

typedef struct sockaddr sa;

static struct sockaddr_in local_addr(uint16_t port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_port = htons(port),
				     .sin_addr.s_addr = htonl(0x7f000001) };
}

static void talk(int a, int b)
{
	char buf[100];

	DO(send, a, "question", 8, 0);
	DO(recv, b, buf, sizeof(buf), MSG_PEEK);
	DO(recv, b, buf, 4, 0);
	note_bytes("half", buf, 4);
	DO(recvfrom, b, buf, sizeof(buf), 0, NULL, NULL);
	note_bytes("rest", buf, 4);
	DO(recv, b, buf, sizeof(buf), MSG_DONTWAIT);
	DO(write, b, "answer", 6);
	DO(read, a, buf, sizeof(buf));
	note_bytes("answer", buf, 6);
	DO(send, a, buf, 0, 0);
	DO(send, a, "last", 4, MSG_MORE);
	DO(shutdown, a, SHUT_WR);
	DO(send, a, "x", 1, MSG_NOSIGNAL);
	DO(recv, b, buf, 4, MSG_WAITALL);
	DO(recv, b, buf, sizeof(buf), 0);
	DO(send, b, "still", 5, 0);
	DO(recv, a, buf, sizeof(buf), 0);
}

static void tcp(void)
{
	struct sockaddr_in addr = local_addr(0), seen;
	socklen_t len = sizeof(addr);
	int one = 1, value = 0, listener, client, server;

	listener = (int)DO_NEW(socket, AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	DO(setsockopt, listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	DO(accept, listener, NULL, NULL); /* not listening yet */
	DO(bind, listener, (sa *)&addr, sizeof(addr));
	DO(bind, listener, (sa *)&addr, sizeof(addr));
	DO(listen, listener, 10);
	DO(getsockname, listener, (sa *)&addr, &len);
	client = (int)DO_NEW(socket, AF_INET, SOCK_STREAM, 0);
	DO(connect, client, (sa *)&addr, sizeof(addr));
	DO(connect, client, (sa *)&addr, sizeof(addr));
	len = sizeof(seen);
	server = (int)DO_NEW(accept, listener, (sa *)&seen, &len);
	note("len", len);
	note("family", seen.sin_family);
	note("F_GETFL", fcntl(server, F_GETFL));
	DO(getpeername, client, (sa *)&seen, &len);
	note("same port", seen.sin_port == addr.sin_port);
	len = sizeof(value);
	DO(getsockopt, client, SOL_SOCKET, SO_TYPE, &value, &len);
	note("SO_TYPE", value);
	talk(client, server);
	DO(close, client);
	DO(close, server);
	DO(close, listener);
	client = (int)DO_NEW(socket, AF_INET, SOCK_STREAM, 0);
	DO(connect, client, (sa *)&addr, sizeof(addr)); /* refused */
	DO(read, client, &value, 1);
	DO(close, client);
}

static void *connect_later(void *arg)
{
	sleep_ms(30);
	close(connect_to(*(uint16_t *)arg));
	return NULL;
}

static void accepts(void)
{
	uint16_t port;
	int listener = make_listener(&port), fd;
	static const int flags[] = { 0, SOCK_NONBLOCK, SOCK_CLOEXEC,
				     SOCK_NONBLOCK | SOCK_CLOEXEC, 1 };

	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		pthread_t thread = thread_start(connect_later, &port);

		fd = (int)DO_NEW(accept4, listener, NULL, NULL, flags[i]);
		note("F_GETFL", fcntl(fd, F_GETFL));
		note("F_GETFD", fcntl(fd, F_GETFD));
		thread_join(thread);
	}
	DO(accept, 0, NULL, NULL);
	DO(accept, -1, NULL, NULL);
}

static void unix_stream(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX, .sun_path = "sock" };
	int listener, client, server, sv[2];

	listener = (int)DO_NEW(socket, AF_UNIX, SOCK_STREAM, 0);
	client = (int)DO_NEW(socket, AF_UNIX, SOCK_STREAM, 0);
	DO(connect, client, (sa *)&addr, sizeof(addr)); /* absent */
	DO(bind, listener, (sa *)&addr, sizeof(addr));
	DO(connect, client, (sa *)&addr, sizeof(addr)); /* not listening */
	DO(listen, listener, 1);
	DO(connect, client, (sa *)&addr, sizeof(addr));
	server = (int)DO_NEW(accept, listener, NULL, NULL);
	talk(client, server);
	DO(close, client);
	DO(close, server);
	DO(close, listener);
	DO(socketpair, AF_UNIX, SOCK_STREAM, 0, sv);
	talk(sv[0], sv[1]);
	DO(socketpair, AF_INET, SOCK_STREAM, 0, sv);
	DO_NEW(socket, 999, SOCK_STREAM, 0);
}

static void datagrams(void)
{
	struct sockaddr_in addr = local_addr(0), from;
	socklen_t len = sizeof(addr);
	char buf[100];
	int a, b, sv[2];

	a = (int)DO_NEW(socket, AF_INET, SOCK_DGRAM, 0);
	b = (int)DO_NEW(socket, AF_INET, SOCK_DGRAM, 0);
	DO(bind, a, (sa *)&addr, sizeof(addr));
	DO(getsockname, a, (sa *)&addr, &len);
	DO(sendto, b, "one", 3, 0, (sa *)&addr, sizeof(addr));
	DO(sendto, b, "", 0, 0, (sa *)&addr, sizeof(addr));
	DO(sendto, b, "twice", 5, 0, (sa *)&addr, sizeof(addr));
	DO(send, b, "nowhere", 7, 0);
	len = sizeof(from);
	DO(recvfrom, a, buf, sizeof(buf), 0, (sa *)&from, &len);
	note("len", len);
	DO(recv, a, buf, sizeof(buf), 0); /* an empty one */
	DO(recv, a, buf, 2, MSG_TRUNC);
	DO(recv, a, buf, sizeof(buf), MSG_DONTWAIT);
	DO(connect, b, (sa *)&addr, sizeof(addr));
	DO(write, b, "connected", 9);
	DO(read, a, buf, 4); /* the rest is lost */
	DO(recv, a, buf, 4, MSG_DONTWAIT);
	DO(sendto, b, buf, 70000, 0, NULL, 0);
	DO(close, a);
	DO(send, b, "x", 1, 0);
	DO(send, b, "x", 1, 0); /* refused by the first */
	DO(close, b);
	DO(socketpair, AF_UNIX, SOCK_SEQPACKET, 0, sv);
	DO(write, sv[0], "abc", 3);
	DO(write, sv[0], "defg", 4);
	DO(read, sv[1], buf, sizeof(buf));
	DO(read, sv[1], buf, 2);
	DO(close, sv[0]);
	DO(read, sv[1], buf, sizeof(buf));
}

static void several_messages(void)
{
	char bytes[4][10] = { "a", "bb", "ccc", "dddd" }, got[4][10];
	struct iovec out[4], in[4];
	struct mmsghdr send[4] = { 0 }, recv[4] = { 0 };
	struct timespec soon = { .tv_nsec = 20 * 1000000 };
	int sv[2];

	for (unsigned int i = 0; i < 4; i++) {
		out[i] = (struct iovec){ bytes[i], i + 1 };
		in[i] = (struct iovec){ got[i], sizeof(got[i]) };
		send[i].msg_hdr.msg_iov = &out[i];
		recv[i].msg_hdr.msg_iov = &in[i];
		send[i].msg_hdr.msg_iovlen = recv[i].msg_hdr.msg_iovlen = 1;
	}
	CHECK_EQ(socketpair(AF_UNIX, SOCK_DGRAM, 0, sv), 0);
	DO(sendmmsg, sv[0], send, 4, 0);
	DO(recvmmsg, sv[1], recv, 3, 0, NULL);
	for (int i = 0; i < 3; i++)
		note("msg_len", recv[i].msg_len);
	note_bytes("ccc", got[2], 3);
	DO(recvmmsg, sv[1], recv, 4, MSG_WAITFORONE, NULL);
	DO(recvmmsg, sv[1], recv, 4, MSG_DONTWAIT, NULL);
	DO(sendmmsg, sv[0], send, 2, 0);
	DO(recvmmsg, sv[1], recv, 2, 0, &soon);
	DO(sendmmsg, sv[0], send, 0, 0);
	DO(recvmmsg, -1, recv, 2, 0, &soon);
	send[1].msg_hdr.msg_iovlen = 5000;
	DO(sendmmsg, sv[0], send, 2, 0);
	DO(sendmmsg, sv[0], send + 1, 1, 0);
}

struct passed {
	struct msghdr msg;
	struct iovec iov;
	char byte;
	union {
		char space[CMSG_SPACE(2 * sizeof(int))];
		struct cmsghdr align;
	} control;
};

static struct msghdr *passed_init(struct passed *p)
{
	memset(p, 0, sizeof(*p));
	p->iov = (struct iovec){ &p->byte, 1 };
	p->msg.msg_iov = &p->iov;
	p->msg.msg_iovlen = 1;
	p->msg.msg_control = p->control.space;
	p->msg.msg_controllen = sizeof(p->control.space);
	return &p->msg;
}

static void passing_descriptors(void)
{
	int sv[2], fds[2], got[2];
	struct cmsghdr *cmsg;
	struct passed p;
	char buf[10];

	make_pair(sv);
	make_pipe(fds);
	passed_init(&p);
	cmsg = CMSG_FIRSTHDR(&p.msg);
	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(fds));
	memcpy(CMSG_DATA(cmsg), fds, sizeof(fds));
	DO(sendmsg, sv[0], &p.msg, 0);
	DO(close, fds[0]);
	DO(recvmsg, sv[1], passed_init(&p), MSG_CMSG_CLOEXEC);
	note("controllen", (int64_t)p.msg.msg_controllen);
	note("flags", p.msg.msg_flags);
	cmsg = CMSG_FIRSTHDR(&p.msg);
	CHECK(cmsg != NULL);
	note("type", cmsg->cmsg_type);
	memcpy(got, CMSG_DATA(cmsg), sizeof(got));
	note("F_GETFD", fcntl(got[1], F_GETFD));
	DO(write, got[1], "through", 7);
	DO(read, got[0], buf, sizeof(buf));
	note_bytes("through", buf, 7);
	DO(sendmsg, sv[0], passed_init(&p), 0);
	p.msg.msg_controllen = 0;
	DO(sendmsg, sv[0], &p.msg, 0);
	DO(recvmsg, sv[1], passed_init(&p), 0);
	note("controllen", (int64_t)p.msg.msg_controllen);
}

/* Reads everything slowly and checks it against the file's pattern. */
struct reader {
	int fd;
	uint64_t offset, nr;
};

static void *read_slowly(void *arg)
{
	struct reader *r = arg;
	static uint8_t buf[70000];
	ssize_t ret;

	while ((ret = read(r->fd, buf, 1 + (r->nr * 7919) % sizeof(buf))) > 0) {
		CHECK(filled(buf, r->offset + r->nr, (size_t)ret));
		r->nr += (uint64_t)ret;
		if (r->nr % 16 == 0)
			sleep_ms(1);
	}
	CHECK_EQ(ret, 0);
	return NULL;
}

static void sendfile_once(void (*make)(int *), int file, off_t offset,
			  size_t count)
{
	struct reader reader = { .offset = (uint64_t)offset };
	off_t moved = offset;
	pthread_t thread;
	int sv[2];

	make(sv);
	reader.fd = sv[1];
	thread = thread_start(read_slowly, &reader);
	note("offset", offset);
	DO(sendfile, sv[0], file, &moved, count);
	note("moved", moved);
	DO(shutdown, sv[0], SHUT_WR);
	thread_join(thread);
	note("arrived", (int64_t)reader.nr);
	close(sv[0]);
	close(sv[1]);
}

static void sendfiles(void)
{
	static const size_t sizes[] = { 1, 100, 4096, 65537, 5 << 20 };
	int file = make_file("file", 5 << 20), sv[2];

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		sendfile_once(make_tcp_pair, file, 0, sizes[i]);
		sendfile_once(make_pair, file, 123, sizes[i]);
	}
	sendfile_once(make_pair, file, 5 << 20, 10); /* at its end */
	make_pair(sv);
	DO(lseek, file, 5000, SEEK_SET);
	DO(sendfile, sv[0], file, NULL, 300);
	DO(lseek, file, 0, SEEK_CUR);
	DO(sendfile, sv[0], file, NULL, 0);
	DO(sendfile, sv[0], sv[1], NULL, 10);
	DO(sendfile, sv[0], -1, NULL, 10);
	DO(sendfile, -1, file, NULL, 10);
	DO(sendfile, file, sv[0], NULL, 10);
}

/* Several sendfiles in flight, all to full sockets. */
static void many_sendfiles(void)
{
	enum {
		NR = 8,
		SIZE = 1 << 20
	};
	int file = make_file("file", SIZE), sv[NR][2];
	struct reader readers[NR] = { 0 };
	struct op ops[NR] = { 0 };
	pthread_t threads[NR];
	off_t offsets[NR] = { 0 };

	for (int i = 0; i < NR; i++) {
		make_pair(sv[i]);
		POST(sendfile, &ops[i], sv[i][0], file, &offsets[i], SIZE);
	}
	run_ms(20);
	for (int i = 0; i < NR; i++) {
		readers[i].fd = sv[i][1];
		CHECK_EQ(ops[i].nr_done, 0);
	}
	/* The readers share a buffer: one after the other. */
	for (int i = 0; i < NR; i++) {
		threads[i] = thread_start(read_slowly, &readers[i]);
		CHECK_EQ(WAIT(&ops[i]), SIZE);
		CHECK_EQ(offsets[i], SIZE);
		CHECK_EQ(shutdown(sv[i][0], SHUT_WR), 0);
		thread_join(threads[i]);
		CHECK_EQ(readers[i].nr, SIZE);
	}
}

/* A hundred connections talk at once, every call posted. */
static void many_connections(void)
{
	enum {
		NR = 100
	};
	uint16_t port;
	int listener = make_listener(&port);
	struct sockaddr_in addr = local_addr(port);
	static struct op accepted[NR], connected[NR], sent[NR], got[NR];
	static uint8_t out[NR][100], in[NR][100];
	int clients[NR];

	for (int i = 0; i < NR; i++)
		POST(accept, &accepted[i], listener, NULL, NULL);
	for (int i = 0; i < NR; i++) {
		clients[i] = (int)CALL(socket, AF_INET, SOCK_STREAM, 0);
		POST(connect, &connected[i], clients[i], (sa *)&addr,
		     sizeof(addr));
		fill(out[i], 77, sizeof(out[i]));
	}
	for (int i = 0; i < NR; i++) {
		CHECK_EQ(WAIT(&connected[i]), 0);
		CHECK(WAIT(&accepted[i]) >= 0);
		POST(read, &got[i], (int)accepted[i].ev.ret, in[i], 100);
	}
	run_ms(10);
	for (int i = 0; i < NR; i++) {
		CHECK_EQ(got[i].nr_done, 0);
		POST(send, &sent[i], clients[i], out[i], 100, 0);
	}
	for (int i = 0; i < NR; i++) {
		CHECK_EQ(WAIT(&sent[i]), 100);
		CHECK_EQ(WAIT(&got[i]), 100);
		CHECK(filled(in[i], 77, 100));
	}
}

static const struct test tests[] = {
	{ "tcp", tcp, TEST_BOTH },
	{ "accepts", accepts, TEST_BOTH },
	{ "unix_stream", unix_stream, TEST_BOTH },
	{ "datagrams", datagrams, TEST_BOTH },
	{ "several_messages", several_messages, TEST_BOTH },
	{ "passing_descriptors", passing_descriptors, TEST_BOTH },
	{ "sendfiles", sendfiles, TEST_BOTH | TEST_SLOW },
	{ "many_sendfiles", many_sendfiles, 0 },
	{ "many_connections", many_connections, 0 },
};

int main(int argc, char **argv)
{
	return run_group(argc, argv, tests, ARRAY_SIZE(tests));
}
