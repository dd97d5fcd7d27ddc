/* SPDX-License-Identifier: MIT */
/*
 * What the two file servers share, so that only the way of making system
 * calls differs: options, the listening socket, reading a request and writing
 * the header of an answer. GET and HEAD, HTTP/1.0 and 1.1, keep-alive.
 */
#ifndef EXAMPLES_HTTP_H
#define EXAMPLES_HTTP_H

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	HTTP_REQUEST_MAX = 4096,
	HTTP_HEADER_MAX = 256
};

struct http_options {
	const char *root, *engine;
	unsigned int timeout_s;
	uint16_t port;
};

struct http_request {
	char *path; /* relative to the root, NUL-terminated, in the buffer */
	size_t size; /* bytes of the request */
	bool head, keep_alive;
};

static inline void http_options(struct http_options *o, int argc, char **argv)
{
	int c;

	*o = (struct http_options){ .root = ".", .port = 8080 };
	while ((c = getopt(argc, argv, "p:e:t:")) != -1) {
		if (c == 'p') {
			o->port = (uint16_t)atoi(optarg);
		} else if (c == 'e') {
			o->engine = optarg;
		} else if (c == 't') {
			o->timeout_s = (unsigned int)atoi(optarg);
		} else {
			fprintf(stderr,
				"usage: %s [-p PORT] [-e ENGINE] "
				"[-t TIMEOUT-SECONDS] [FOLDER]\n",
				argv[0]);
			exit(2);
		}
	}
	if (optind < argc)
		o->root = argv[optind];
}

/* Accepted sockets inherit TCP_NODELAY. Ends the program if it cannot. */
static inline int http_listen(uint16_t *port, int type)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_port = htons(*port) };
	socklen_t len = sizeof(addr);
	int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | type, 0);

	if (fd < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
	    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) ||
	    bind(fd, (struct sockaddr *)&addr, sizeof(addr)) ||
	    listen(fd, 4096) ||
	    getsockname(fd, (struct sockaddr *)&addr, &len)) {
		fprintf(stderr, "port %u: %s\n", *port, strerror(errno));
		exit(1);
	}
	*port = ntohs(addr.sin_port);
	return fd;
}

static inline int http_open_root(const char *root)
{
	int fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0) {
		fprintf(stderr, "%s: %s\n", root, strerror(errno));
		exit(1);
	}
	return fd;
}

static inline int http_hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Undo %XX in place; no way out of the root may be left. */
static inline bool http_clean_path(char *path)
{
	char *to = path;

	for (const char *from = path; *from; from++) {
		int high, low;

		if (*from == '?' || *from == '#')
			break;
		if (*from != '%') {
			*to++ = *from;
			continue;
		}
		high = http_hex(from[1]);
		low = high < 0 ? -1 : http_hex(from[2]);
		if (low < 0 || (high | low) == 0)
			return false;
		*to++ = (char)(high << 4 | low);
		from += 2;
	}
	*to = 0;
	for (const char *at = path; *at; at += strspn(at, "/")) {
		size_t len = strcspn(at, "/");

		if (len == 2 && at[0] == '.' && at[1] == '.')
			return false;
		at += len;
	}
	return true;
}

/* The part of a header line after its name, or NULL. */
static inline const char *http_header(const char *head, const char *name)
{
	size_t len = strlen(name);

	for (const char *at = head; (at = strstr(at, "\r\n")); at += 2) {
		if (!strncasecmp(at + 2, name, len) && at[2 + len] == ':')
			return at + 3 + len + strspn(at + 3 + len, " \t");
	}
	return NULL;
}

/**
 * http_parse - read one request
 * @buf: of HTTP_REQUEST_MAX + 1 bytes, the first @len of them filled
 *
 * Return: 200; 0 if there is more to come; else the status to answer with
 * before closing the connection.
 */
static inline int http_parse(char *buf, size_t len, struct http_request *r)
{
	char *end, *space, *line_end;
	const char *connection;

	buf[len] = 0;
	end = memmem(buf, len, "\r\n\r\n", 4);
	if (!end)
		return len < HTTP_REQUEST_MAX ? 0 : 431;
	if (memchr(buf, 0, (size_t)(end - buf)))
		return 400;
	r->size = (size_t)(end - buf) + 4;
	end[2] = 0;
	r->head = !strncmp(buf, "HEAD ", 5);
	if (!r->head && strncmp(buf, "GET ", 4))
		return 405;
	r->path = buf + (r->head ? 5 : 4);
	line_end = strstr(r->path, "\r\n");
	space = strchr(r->path, ' ');
	if (r->path[0] != '/' || !space || space > line_end ||
	    strncmp(space, " HTTP/1.", 8))
		return 400;
	connection = http_header(line_end, "Connection");
	r->keep_alive = space[8] != '0';
	if (connection)
		r->keep_alive = r->keep_alive ?
					strncasecmp(connection, "close", 5) :
					!strncasecmp(connection, "keep-", 5);
	*space = 0;
	r->path += strspn(r->path, "/");
	if (!http_clean_path(r->path))
		return 400;
	if (!*r->path)
		r->path = (char *)"index.html";
	return 200;
}

static inline const char *http_type(const char *path)
{
	static const char *const types[][2] = {
		{ ".html", "text/html" },   { ".txt", "text/plain" },
		{ ".css", "text/css" },	    { ".js", "text/javascript" },
		{ ".png", "image/png" },    { ".jpg", "image/jpeg" },
		{ ".svg", "image/svg+xml" }
	};
	const char *dot = strrchr(path, '.');

	for (size_t i = 0; dot && i < sizeof(types) / sizeof(types[0]); i++) {
		if (!strcasecmp(dot, types[i][0]))
			return types[i][1];
	}
	return "application/octet-stream";
}

/* The answer to what opening and fstat said: 200, or the status of an error. */
static inline int http_status(int64_t opened, int64_t stated,
			      const struct stat *st)
{
	if (opened == -ENOENT || opened == -ENOTDIR || opened == -ENAMETOOLONG)
		return 404;
	if (opened == -EACCES || opened == -ELOOP)
		return 403;
	if (opened < 0 || stated < 0)
		return 503;
	return S_ISREG(st->st_mode) ? 200 : 403;
}

/* Header, and for an error the body too. Return: its size. */
static inline size_t http_answer(char *header, int status, const char *path,
				 off_t size, bool keep_alive)
{
	const char *text = status == 200 ? "OK" :
			   status == 400 ? "Bad Request" :
			   status == 403 ? "Forbidden" :
			   status == 404 ? "Not Found" :
			   status == 405 ? "Method Not Allowed" :
			   status == 431 ? "Request Header Fields Too Large" :
					   "Service Unavailable";
	char body[64] = "";

	if (status != 200)
		size = snprintf(body, sizeof(body), "%d %s\n", status, text);
	return (size_t)snprintf(header, HTTP_HEADER_MAX,
				"HTTP/1.1 %d %s\r\nContent-Type: %s\r\n"
				"Content-Length: %lld\r\n%s\r\n%s",
				status, text,
				status == 200 ? http_type(path) : "text/plain",
				(long long)size,
				keep_alive ? "" : "Connection: close\r\n",
				body);
}

#endif /* EXAMPLES_HTTP_H */
