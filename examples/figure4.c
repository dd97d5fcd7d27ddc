/* SPDX-License-Identifier: MIT */
/*
 * The server of libflexsc-atc11.txt, figure 4, with trivial edits: a handler
 * gets the event and finds its connection in it, the arguments stand in the
 * order of the calls, the opened file is kept to be closed, and the helpers
 * that the figure leaves out are here. It sends the bare file, no header:
 *
 *	figure4 8080 &
 *	curl --http0.9 http://localhost:8080/README.md
 */
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <flexsc.h>

typedef struct conn {
	struct flexsc_event event;
	int fd, file_fd;
	size_t size;
	char buf[1024];
} conn;

conn master;

void conn_accepted(struct flexsc_event *event);
void data_read(struct flexsc_event *event);
void file_opened(struct flexsc_event *event);
void file_sent(struct flexsc_event *event);

int bind_and_listen(int port);
conn *alloc_new_conn(void);
char *parse_request(char *buf, long size);

int main(int argc, char **argv)
{
	/* init library and register with kernel */
	flexsc_init();

	/* not performance critical, do synchronously */
	master.fd = bind_and_listen(argc > 1 ? atoi(argv[1]) : 8080);

	/* prepare accept */
	master.event.handler = conn_accepted;
	flexsc_accept(&master.event, master.fd, NULL, NULL);

	/* jump to event loop */
	return flexsc_main_loop();
}

/* Called when accept() returns */
void conn_accepted(struct flexsc_event *event)
{
	conn *new_conn = alloc_new_conn();

	/* get the return value of the accept() */
	new_conn->fd = (int)event->ret;
	new_conn->event.handler = data_read;

	/* issue another accept on the master socket */
	flexsc_accept(&master.event, master.fd, NULL, NULL);

	if (new_conn->fd >= 0)
		flexsc_read(&new_conn->event, new_conn->fd, new_conn->buf,
			    new_conn->size);
	else
		free(new_conn);
}

void data_read(struct flexsc_event *event)
{
	conn *c = event->data;
	char *reply_file;

	/* read of 0 means connection closed */
	if (event->ret <= 0) {
		flexsc_close(NULL, c->fd);
		free(c);
		return;
	}

	reply_file = parse_request(c->buf, event->ret);
	c->event.handler = file_opened;
	flexsc_open(&c->event, reply_file, O_RDONLY, 0);
}

void file_opened(struct flexsc_event *event)
{
	conn *c = event->data;

	c->file_fd = (int)event->ret;
	c->event.handler = file_sent;

	/* issue asynchronous sendfile; without a file it fails, as it should */
	flexsc_sendfile(&c->event, c->fd, c->file_fd, NULL, 1 << 30);
}

void file_sent(struct flexsc_event *event)
{
	conn *c = event->data;

	/* no callback necessary to handle close */
	if (c->file_fd >= 0)
		flexsc_close(NULL, c->file_fd);
	flexsc_close(NULL, c->fd);
	free(c);
}

/* What the figure leaves out --------------------------------------------- */

int bind_and_listen(int port)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_port = htons((uint16_t)port) };
	int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&addr, sizeof(addr)) ||
	    listen(fd, 100)) {
		perror("bind_and_listen");
		exit(1);
	}
	return fd;
}

conn *alloc_new_conn(void)
{
	conn *c = calloc(1, sizeof(*c));

	if (!c)
		exit(1);
	c->event.data = c;
	c->size = sizeof(c->buf) - 1;
	return c;
}

/* "GET /name ...": the name, in the present folder and nowhere else. */
char *parse_request(char *buf, long size)
{
	char *name = buf + 5;

	buf[size] = 0;
	if (strncmp(buf, "GET /", 5) || strstr(name, ".."))
		return "";
	name += strspn(name, "/");
	name[strcspn(name, " \r\n")] = 0;
	return name;
}
