/* SPDX-License-Identifier: MIT */
/*
 * Starting servers of benchmark `server` in processes of their own, and
 * reading their clocks from outside, so that the servers need no code for it.
 * The file servers are the examples themselves, renamed by the build.
 */
#include "bench/server.h"

#include "bench/machine.h"

#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int fileserver_main(int argc, char **argv);
int fileserver_epoll_main(int argc, char **argv);

pid_t process_fork(int cpu)
{
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		machine_pin(cpu);
	}
	return pid;
}

void process_stop(pid_t pid)
{
	if (pid <= 0)
		return;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static int listen_somewhere(uint16_t *port)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	socklen_t size = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&address, size) ||
	    listen(fd, 4096) ||
	    getsockname(fd, (struct sockaddr *)&address, &size))
		return -errno;
	*port = ntohs(address.sin_port);
	return fd;
}

static int start_echo(struct server *s, const char *engine)
{
	int listener = listen_somewhere(&s->port);

	if (listener < 0)
		return listener;
	s->pid = process_fork(machine()->cpu_app);
	if (s->pid == 0) {
		if (engine)
			server_flexsc(listener, engine);
		else
			server_epoll(listener);
		_exit(1);
	}
	close(listener);
	return s->pid < 0 ? -errno : 0;
}

static void run_files(const char *folder, const char *engine)
{
	char *flexsc[] = { "fileserver",   "-p",	   "0", "-e",
			   (char *)engine, (char *)folder, NULL };
	char *epoll[] = { "fileserver-epoll", "-p", "0", (char *)folder, NULL };

	optind = 1;
	if (engine)
		fileserver_main(6, flexsc);
	else
		fileserver_epoll_main(4, epoll);
}

/* They say where they listen; FlexSC also says which engine it took. */
static int start_files(struct server *s, const char *folder, const char *engine)
{
	char taken[16] = "";
	int says[2], got;
	FILE *f;

	if (pipe(says))
		return -errno;
	s->pid = process_fork(machine()->cpu_app);
	if (s->pid == 0) {
		dup2(says[1], STDOUT_FILENO);
		run_files(folder, engine);
		_exit(1);
	}
	close(says[1]);
	f = fdopen(says[0], "re");
	got = fscanf(f, "serving %*s on port %hu with engine %15s", &s->port,
		     taken);
	fclose(f);
	if (got >= 1 && (!engine || strcmp(taken, engine) == 0))
		return 0;
	process_stop(s->pid);
	return -ENOSYS;
}

int server_start(struct server *s, const struct service *service,
		 const char *engine)
{
	return service->folder ? start_files(s, service->folder, engine) :
				 start_echo(s, engine);
}

bool server_clocks(const struct server *s, double *cpu_ns, double *app_ns)
{
	char path[64];
	struct timespec ts;
	clockid_t clock;
	FILE *f;

	if (clock_getcpuclockid(s->pid, &clock) || clock_gettime(clock, &ts))
		return false;
	*cpu_ns = (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
	*app_ns = NAN;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", s->pid,
		 s->pid);
	f = fopen(path, "re");
	if (f) {
		if (fscanf(f, "%lf", app_ns) != 1)
			*app_ns = NAN;
		fclose(f);
	}
	return true;
}
