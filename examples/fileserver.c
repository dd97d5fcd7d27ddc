/* SPDX-License-Identifier: MIT */
/*
 * The server of libflexsc-atc11.txt, figure 4, grown up enough to serve real
 * files to real clients: HTTP/1.1 with keep-alive, several accepts posted at
 * once, and two chains for each request: open and fstat; header, sendfile and
 * close. fileserver-epoll.c is the same server without FlexSC.
 *
 *	fileserver [-p PORT] [-e ENGINE] [-t TIMEOUT-SECONDS] [FOLDER]
 */
#define _GNU_SOURCE
#include <flexsc.h>

#include "examples/http.h"

enum {
	NR_ACCEPTS = 16
};

struct conn {
	struct flexsc_event got, opened, stated, sent, copied;
	struct http_request request;
	struct stat st;
	char header[HTTP_HEADER_MAX];
	size_t header_size;
	int fd;
	size_t len; /* bytes in buf */
	char buf[HTTP_REQUEST_MAX + 1];
};

static struct http_options options;
static int listener, root;

static void request_done(struct conn *c);

static void conn_end(struct conn *c)
{
	flexsc_close(NULL, c->fd);
	free(c);
}

static void header_sent(struct flexsc_event *ev)
{
	struct conn *c = ev->data;

	if (ev->ret == (int64_t)c->header_size && c->request.keep_alive)
		request_done(c);
	else
		conn_end(c);
}

/* What has no body, or carries it with it. */
static void answer(struct conn *c, int status)
{
	c->header_size = http_answer(c->header, status, c->request.path,
				     c->st.st_size, c->request.keep_alive);
	c->sent.handler = header_sent;
	flexsc_send(&c->sent, c->fd, c->header, c->header_size, 0);
}

static void file_sent(struct flexsc_event *ev)
{
	struct conn *c = ev->data;

	if (ev->ret == c->st.st_size && c->request.keep_alive)
		request_done(c);
	else
		conn_end(c);
}

static void file_stated(struct flexsc_event *ev)
{
	struct conn *c = ev->data;
	int file = (int)c->opened.ret;
	int status = http_status(c->opened.ret, ev->ret, &c->st);

	if (status != 200 || c->request.head || !c->st.st_size) {
		if (file >= 0)
			flexsc_close(NULL, file);
		answer(c, status);
		return;
	}
	c->header_size = http_answer(c->header, 200, c->request.path,
				     c->st.st_size, c->request.keep_alive);
	flexsc_chain_begin();
	/* If it fails, so does what follows: that one is looked at. */
	flexsc_send(NULL, c->fd, c->header, c->header_size, MSG_MORE);
	flexsc_sendfile(&c->copied, c->fd, file, NULL, (size_t)c->st.st_size);
	flexsc_chain_finally();
	flexsc_close(NULL, file);
	flexsc_chain_end();
}

/* Take the next request out of the buffer, or read on. */
static void request_next(struct conn *c)
{
	int status = http_parse(c->buf, c->len, &c->request);

	if (status == 0) {
		flexsc_recv(&c->got, c->fd, c->buf + c->len,
			    HTTP_REQUEST_MAX - c->len, 0);
		return;
	}
	if (status != 200) {
		c->request.keep_alive = false;
		answer(c, status);
		return;
	}
	flexsc_chain_begin();
	flexsc_openat(&c->opened, root, c->request.path, O_RDONLY | O_CLOEXEC,
		      0);
	flexsc_fstat(&c->stated, FLEXSC_RESULT(0), &c->st);
	flexsc_chain_end();
}

static void request_done(struct conn *c)
{
	c->len -= c->request.size;
	memmove(c->buf, c->buf + c->request.size, c->len);
	request_next(c);
}

static void data_read(struct flexsc_event *ev)
{
	struct conn *c = ev->data;

	if (ev->ret <= 0) { /* the end, an error, or the time is over */
		conn_end(c);
		return;
	}
	c->len += (size_t)ev->ret;
	request_next(c);
}

static void conn_accepted(struct flexsc_event *ev);

static void accept_again(struct flexsc_event *ev)
{
	ev->handler = conn_accepted;
	flexsc_accept4(ev, listener, NULL, NULL, SOCK_CLOEXEC);
}

static void conn_accepted(struct flexsc_event *ev)
{
	struct conn *c = ev->ret < 0 ? NULL : calloc(1, sizeof(*c));

	if (c) {
		c->fd = (int)ev->ret;
		c->got.handler = data_read;
		c->stated.handler = file_stated;
		c->copied.handler = file_sent;
		c->got.data = c->stated.data = c->copied.data = c;
		c->sent.data = c;
		c->got.timeout_ns = options.timeout_s * 1000000000ull;
		request_next(c);
	} else if (ev->ret >= 0) {
		flexsc_close(NULL, (int)ev->ret);
	} else if (ev->ret == -EMFILE || ev->ret == -ENFILE) {
		ev->handler = accept_again;
		flexsc_timer(ev, 10000000);
		return;
	}
	accept_again(ev);
}

int main(int argc, char **argv)
{
	static struct flexsc_event accepts[NR_ACCEPTS];
	int ret;

	http_options(&options, argc, argv);
	root = http_open_root(options.root);
	listener = http_listen(&options.port, 0);
	if (options.engine)
		setenv("FLEXSC_ENGINE", options.engine, 1);
	/* Not needed, posted calls never raise it; but then none of them has
	 * to see to that: two crossings less for each sendfile. */
	signal(SIGPIPE, SIG_IGN);
	ret = flexsc_init();
	if (ret) {
		fprintf(stderr, "flexsc_init: %s\n", strerror(-ret));
		return 1;
	}
	printf("serving %s on port %u with engine %s\n", options.root,
	       options.port, flexsc_loop_engine(flexsc_loop_current()));
	fflush(stdout);
	for (int i = 0; i < NR_ACCEPTS; i++)
		accept_again(&accepts[i]);
	return flexsc_main_loop();
}
