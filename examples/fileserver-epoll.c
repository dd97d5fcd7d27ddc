/* SPDX-License-Identifier: MIT */
/*
 * The rival: the same server as fileserver.c, with plain epoll at its best.
 * Non-blocking sockets from accept4, one edge-triggered registration for each
 * connection, and no call whose answer is known before: no read after a short
 * read, no arming and disarming.
 *
 *	fileserver-epoll [-p PORT] [FOLDER]
 */
#define _GNU_SOURCE
#include "examples/http.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/sendfile.h>

enum {
	MAX_EVENTS = 256
};

struct conn {
	struct http_request request;
	struct stat st;
	char header[HTTP_HEADER_MAX];
	size_t header_size, header_sent;
	off_t left; /* bytes of the file not sent yet */
	int fd, file; /* file: -1 if there is none */
	bool answering, readable, ended; /* ended: nothing more will come */
	size_t len; /* bytes in buf */
	char buf[HTTP_REQUEST_MAX + 1];
};

static int listener, root, set;

static void conn_end(struct conn *c)
{
	if (c->file >= 0)
		close(c->file);
	close(c->fd);
	free(c);
}

static void start_answer(struct conn *c, int status)
{
	c->answering = true;
	c->header_sent = 0;
	c->header_size = http_answer(c->header, status, c->request.path,
				     c->st.st_size, c->request.keep_alive);
	c->left = status == 200 && !c->request.head ? c->st.st_size : 0;
}

static void start_request(struct conn *c)
{
	int ret = 0, status;

	c->file = openat(root, c->request.path, O_RDONLY | O_CLOEXEC);
	ret = c->file < 0 ? -errno : fstat(c->file, &c->st) ? -errno : 0;
	status = http_status(c->file < 0 ? ret : 0, ret, &c->st);
	if (c->file >= 0 &&
	    (status != 200 || c->request.head || !c->st.st_size)) {
		close(c->file);
		c->file = -1;
	}
	start_answer(c, status);
}

/* Return: false if it has to wait, or has failed (then errno is not EAGAIN). */
static bool send_answer(struct conn *c)
{
	ssize_t ret;

	while (c->header_sent < c->header_size) {
		ret = send(c->fd, c->header + c->header_sent,
			   c->header_size - c->header_sent,
			   MSG_NOSIGNAL | (c->left ? MSG_MORE : 0));
		if (ret < 0)
			return false;
		c->header_sent += (size_t)ret;
	}
	while (c->left) {
		ret = sendfile(c->fd, c->file, NULL, (size_t)c->left);
		if (ret <= 0) {
			errno = ret ? errno : EIO; /* the file has shrunk */
			return false;
		}
		c->left -= ret;
	}
	if (c->file >= 0)
		close(c->file);
	c->file = -1;
	c->answering = false;
	c->len -= c->request.size;
	memmove(c->buf, c->buf + c->request.size, c->len);
	errno = EPIPE; /* for a connection that is not kept */
	return c->request.keep_alive;
}

/* Return: as send_answer() */
static bool read_more(struct conn *c)
{
	size_t space = HTTP_REQUEST_MAX - c->len;
	ssize_t ret;

	errno = EAGAIN;
	if (!c->readable)
		return false;
	ret = recv(c->fd, c->buf + c->len, space, 0);
	/* A short read has emptied the socket: the next edge tells of more. */
	c->readable = ret == (ssize_t)space || c->ended;
	if (ret <= 0) {
		errno = ret ? errno : EPIPE;
		return false;
	}
	c->len += (size_t)ret;
	return true;
}

static void conn_run(struct conn *c, uint32_t events)
{
	bool going = true;

	c->ended |= !!(events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR));
	c->readable |= c->ended || (events & EPOLLIN);
	while (going) {
		int status = 0;

		if (c->answering) {
			going = send_answer(c);
			continue;
		}
		if (c->len)
			status = http_parse(c->buf, c->len, &c->request);
		if (status == 200) {
			start_request(c);
		} else if (status) {
			c->request.keep_alive = false;
			start_answer(c, status);
		} else {
			going = read_more(c);
		}
	}
	if (errno != EAGAIN)
		conn_end(c);
}

static void accept_all(void)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP |
					       EPOLLET };
	int fd;

	while ((fd = accept4(listener, NULL, NULL,
			     SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
		struct conn *c = calloc(1, sizeof(*c));

		if (!c) {
			close(fd);
			continue;
		}
		c->fd = fd;
		c->file = -1;
		event.data.ptr = c;
		if (epoll_ctl(set, EPOLL_CTL_ADD, fd, &event))
			conn_end(c);
	}
}

int main(int argc, char **argv)
{
	struct epoll_event events[MAX_EVENTS] = { { .events = EPOLLIN } };
	struct http_options options;

	http_options(&options, argc, argv);
	root = http_open_root(options.root);
	listener = http_listen(&options.port, SOCK_NONBLOCK);
	signal(SIGPIPE, SIG_IGN);
	set = epoll_create1(EPOLL_CLOEXEC);
	if (set < 0 || epoll_ctl(set, EPOLL_CTL_ADD, listener, events)) {
		fprintf(stderr, "epoll: %s\n", strerror(errno));
		return 1;
	}
	printf("serving %s on port %u with epoll\n", options.root,
	       options.port);
	fflush(stdout);
	for (;;) {
		int nr = epoll_wait(set, events, MAX_EVENTS, -1);

		for (int i = 0; i < nr; i++) {
			if (events[i].data.ptr)
				conn_run(events[i].data.ptr, events[i].events);
			else
				accept_all();
		}
	}
}
