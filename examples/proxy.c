/* SPDX-License-Identifier: MIT */
/*
 * A TCP proxy, for HTTP and anything else: for each connection it connects to
 * the target and moves bytes in both directions, each step one chain of a read
 * and a write of what was read. Connecting and silence have time limits.
 *
 *	proxy PORT TARGET-ADDRESS TARGET-PORT [IDLE-SECONDS]
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <flexsc.h>

enum {
	BUF_SIZE = 16384,
	CONNECT_SECONDS = 5
};

static const uint64_t second_ns = 1000000000;

struct flow {
	struct session *session;
	struct flexsc_event got, put;
	int from, to;
	char buf[BUF_SIZE];
};

struct session {
	struct flexsc_event connected;
	struct flow up, down;
	int client, target;
	unsigned int nr_flows; /* still moving */
};

static struct sockaddr_in target_addr;
static uint64_t idle_ns;
static int listener;

static void session_end(struct session *s)
{
	flexsc_close(NULL, s->client);
	if (s->target >= 0)
		flexsc_close(NULL, s->target);
	free(s);
}

static void flow_step(struct flow *f)
{
	/* What the write returns shows whether the read did. */
	flexsc_chain_begin();
	flexsc_recv(&f->got, f->from, f->buf, sizeof(f->buf), 0);
	flexsc_send(&f->put, f->to, f->buf, (size_t)FLEXSC_RESULT(0), 0);
	flexsc_chain_end();
}

static void flow_stepped(struct flexsc_event *ev)
{
	struct flow *f = ev->data;
	struct session *s = f->session;

	if (f->got.ret > 0 && ev->ret == f->got.ret) {
		flow_step(f);
		return;
	}
	/* The end is passed on; after anything else both directions end. */
	if (f->got.ret == 0) {
		flexsc_shutdown(NULL, f->to, SHUT_WR);
	} else {
		flexsc_shutdown(NULL, f->from, SHUT_RDWR);
		flexsc_shutdown(NULL, f->to, SHUT_RDWR);
	}
	if (--s->nr_flows == 0)
		session_end(s);
}

static void flow_start(struct session *s, struct flow *f, int from, int to)
{
	f->session = s;
	f->from = from;
	f->to = to;
	f->got.timeout_ns = f->put.timeout_ns = idle_ns;
	f->put.handler = flow_stepped;
	f->put.data = f;
	s->nr_flows++;
	flow_step(f);
}

static void connected(struct flexsc_event *ev)
{
	struct session *s = ev->data;

	if (ev->ret < 0) {
		fprintf(stderr, "proxy: target: %s\n", strerror((int)-ev->ret));
		session_end(s);
		return;
	}
	flow_start(s, &s->up, s->client, s->target);
	flow_start(s, &s->down, s->target, s->client);
}

static void accepted(struct flexsc_event *ev)
{
	struct session *s = ev->ret < 0 ? NULL : calloc(1, sizeof(*s));

	if (s) {
		s->client = (int)ev->ret;
		s->target = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		s->connected.handler = connected;
		s->connected.data = s;
		s->connected.timeout_ns = CONNECT_SECONDS * second_ns;
		flexsc_connect(&s->connected, s->target,
			       (struct sockaddr *)&target_addr,
			       sizeof(target_addr));
	} else if (ev->ret >= 0) {
		flexsc_close(NULL, (int)ev->ret);
	}
	flexsc_accept4(ev, listener, NULL, NULL, SOCK_CLOEXEC);
}

int main(int argc, char **argv)
{
	static struct flexsc_event ev = { .handler = accepted };
	struct sockaddr_in addr = { .sin_family = AF_INET };
	int one = 1, ret;

	target_addr.sin_family = AF_INET;
	if (argc < 4 ||
	    inet_pton(AF_INET, argv[2], &target_addr.sin_addr) != 1) {
		fprintf(stderr,
			"usage: %s PORT TARGET-ADDRESS TARGET-PORT "
			"[IDLE-SECONDS]\n",
			argv[0]);
		return 2;
	}
	target_addr.sin_port = htons((uint16_t)atoi(argv[3]));
	idle_ns = (argc > 4 ? (uint64_t)atoi(argv[4]) : 60) * second_ns;
	addr.sin_port = htons((uint16_t)atoi(argv[1]));
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(listener, (struct sockaddr *)&addr, sizeof(addr)) ||
	    listen(listener, 4096)) {
		perror("proxy");
		return 1;
	}
	ret = flexsc_init();
	if (ret) {
		fprintf(stderr, "flexsc_init: %s\n", strerror(-ret));
		return 1;
	}
	flexsc_accept4(&ev, listener, NULL, NULL, SOCK_CLOEXEC);
	return flexsc_main_loop();
}
