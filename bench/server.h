/* SPDX-License-Identifier: MIT */
/*
 * The echo servers of benchmark `server` and their client. Each runs in a
 * process of its own that is killed at the end, so none of them returns
 * unless something is wrong.
 */
#ifndef BENCH_SERVER_H
#define BENCH_SERVER_H

#include <stdint.h>

#define SERVER_MESSAGE 64
#define SERVER_BUFFER 256

void server_epoll(int listener);
/* On this engine only. */
void server_flexsc(int listener, const char *engine);

/**
 * struct client_job - closed-loop connections
 * @report:  pipe; gets the number of answers so far (uint64_t) when the
 *           warm-up is over, and again at the end
 */
struct client_job {
	uint16_t port;
	unsigned int nr_connections;
	uint64_t warm_ns, measure_ns;
	int report;
};

/* Return: 0 or -errno. */
int client_run(const struct client_job *job);

#endif /* BENCH_SERVER_H */
