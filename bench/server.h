/* SPDX-License-Identifier: MIT */
/*
 * The servers of benchmark `server` and their client. Each runs in a process
 * of its own that is killed at the end, so none of them returns unless
 * something is wrong.
 */
#ifndef BENCH_SERVER_H
#define BENCH_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define SERVER_MESSAGE 64
#define SERVER_BUFFER 256

/* Echo, on an open listener. */
void server_epoll(int listener);
/* On this engine only. */
void server_flexsc(int listener, const char *engine);

/* What is served: to echo, or files of this folder. */
struct service {
	const char *name;
	const char *folder; /* NULL: echo */
};

struct server {
	pid_t pid;
	uint16_t port;
};

/**
 * server_start - on the application's processor; NULL @engine: plain epoll
 *
 * Return: 0, or -errno; -ENOSYS when the engine does not work here.
 */
int server_start(struct server *s, const struct service *service,
		 const char *engine);
/* Process time of all its threads, and of the first, the application's. */
bool server_clocks(const struct server *s, double *cpu_ns, double *app_ns);

/* A process that ends with this one, on that processor. 0 in the child. */
pid_t process_fork(int cpu);
void process_stop(pid_t pid);

/**
 * struct client_job - closed-loop connections
 * @message: what each of them sends again and again
 * @report:  pipe; gets the number of answers so far (uint64_t) when the
 *           warm-up is over, and again at the end
 */
struct client_job {
	uint16_t port;
	unsigned int nr_connections;
	const char *message;
	size_t message_size;
	uint64_t warm_ns, measure_ns;
	int report;
};

/* Answers must all be as long as the first. Return: 0 or -errno. */
int client_run(const struct client_job *job);

#endif /* BENCH_SERVER_H */
