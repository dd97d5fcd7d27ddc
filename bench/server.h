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

#define CLIENT_KINDS 2

/* Answers to messages of one kind, below CLIENT_KINDS, are all as long. */
struct client_message {
	const char *text;
	size_t size;
	unsigned int kind;
};

/**
 * struct client_job - connections with at most one message under way each
 * @server:   whose clocks the reports hold; pid 0: nobody's
 * @messages: what each of them sends in turn, beginning somewhere
 * @rate:     messages a second over all of them; 0: as many as are answered
 * @report:   pipe; gets a struct client_says when the warm-up is over, and
 *            again at the end
 *
 * With a rate a message's time begins when it was due, so that a server that
 * stalls is not excused by a client that waits for it.
 */
struct client_job {
	struct server server;
	unsigned int nr_connections;
	const struct client_message *messages;
	unsigned int nr_messages;
	double rate;
	uint64_t warm_ns, measure_ns;
	int report;
};

/*
 * Answers so far, latencies since the last report, and the clocks, read at the
 * same moment: whoever reads the report may have to wait for a processor.
 */
struct client_says {
	uint64_t nr_answers, ns;
	double cpu_ns, app_ns;
	double p50_us, p99_us;
};

/* Return: 0 or -errno. */
int client_run(const struct client_job *job);

/**
 * struct drive - what a client's run said of a server
 * @app_us: of the server's first thread, NAN if unknown
 */
struct drive {
	double cpu_us, app_us, rate, p50_us, p99_us;
};

/*
 * Runs @job (its pipe is made here) in a process of its own on the other
 * processor. Return: true if there were answers.
 */
bool drive_run(struct client_job *job, struct drive *result);

#endif /* BENCH_SERVER_H */
