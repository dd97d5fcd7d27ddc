/* SPDX-License-Identifier: MIT */
/*
 * The first program of the machine that tools/vm-run boots, linked statically:
 * it puts the host's file system (read-only, virtiofs) under a private writable
 * layer, runs one command there, and relays output and exit status through
 * virtio ports. Nothing goes to the console but the kernel's log.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PORT_WAIT_MS 20000
#define STRINGS_MAX 8192

enum {
	PORT_CONTROL,
	PORT_OUTPUT,
	PORT_ERROR,
	NR_PORTS
};

static const char *const port_names[NR_PORTS] = { "control", "output",
						  "error" };
static int ports[NR_PORTS] = { -1, -1, -1 };

/* What to run, as tools/vm-run sends it: strings that end in NUL. */
struct request {
	char *folder;
	char *library; /* of the kernel's modules, or empty */
	char *module; /* to load before and unload after, or empty */
	char *parameters; /* of the module */
	char *strings[STRINGS_MAX]; /* command, NULL, environment, NULL */
	char **environment;
};

static void say(const char *format, ...)
{
	char line[512];
	va_list rest;
	int length;

	va_start(rest, format);
	length = vsnprintf(line, sizeof(line), format, rest);
	va_end(rest);
	if (length >= (int)sizeof(line))
		length = sizeof(line) - 1;
	if (write(ports[PORT_CONTROL] >= 0 ? ports[PORT_CONTROL] : 2, line,
		  length) < 0)
		return;
}

static void power_off(void)
{
	sync();
	reboot(RB_POWER_OFF);
	_exit(1);
}

/* The machine cannot be set up: says why, as the line "bad ...". */
static void die(const char *what)
{
	say("bad %s: %s\n", what, strerror(errno));
	power_off();
}

static void mount_or_die(const char *source, const char *target,
			 const char *type, unsigned long flags,
			 const char *options)
{
	mkdir(target, 0755);
	if (mount(source, target, type, flags, options))
		die(target);
}

/* The modules lie in /modules under names that sort as they depend. */
static void load_own_modules(void)
{
	struct dirent **found;
	char path[512];
	int i, fd, n = scandir("/modules", &found, NULL, alphasort);

	for (i = 0; i < n; i++) {
		if (found[i]->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/modules/%s", found[i]->d_name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0 || syscall(SYS_finit_module, fd, "", 0))
			die(path);
		close(fd);
	}
}

static int port_open(const char *name)
{
	char path[300], label[64] = "";
	struct dirent *entry;
	DIR *ports_dir = opendir("/sys/class/virtio-ports");
	int fd = -1;
	FILE *file;

	while (ports_dir && fd < 0 && (entry = readdir(ports_dir))) {
		snprintf(path, sizeof(path), "/sys/class/virtio-ports/%s/name",
			 entry->d_name);
		file = fopen(path, "r");
		if (!file)
			continue;
		if (!fgets(label, sizeof(label), file))
			label[0] = '\0';
		fclose(file);
		label[strcspn(label, "\n")] = '\0';
		if (strcmp(label, name))
			continue;
		snprintf(path, sizeof(path), "/dev/%s", entry->d_name);
		fd = open(path, O_RDWR | O_CLOEXEC);
	}
	if (ports_dir)
		closedir(ports_dir);
	return fd;
}

/* Ports appear some time after their device. */
static void open_ports(void)
{
	int i, waited_ms = 0;

	for (i = 0; i < NR_PORTS; i++) {
		while ((ports[i] = port_open(port_names[i])) < 0) {
			if ((waited_ms += 10) > PORT_WAIT_MS)
				die(port_names[i]);
			usleep(10000);
		}
	}
}

static void mount_root(void)
{
	mount_or_die("host", "/host", "virtiofs", MS_RDONLY, NULL);
	mount_or_die("private", "/private", "tmpfs", 0, "size=75%");
	mkdir("/private/upper", 0755);
	mkdir("/private/work", 0755);
	mount_or_die("root", "/root", "overlay", 0,
		     "lowerdir=/host,upperdir=/private/upper,"
		     "workdir=/private/work");
	/* Moved, not only changed into: who is in a chroot has no namespaces. */
	if (chdir("/root") || mount(".", "/", NULL, MS_MOVE, NULL) ||
	    chroot("."))
		die("chroot");
	mount_or_die("proc", "/proc", "proc", 0, NULL);
	mount_or_die("sys", "/sys", "sysfs", 0, NULL);
	mount_or_die("dev", "/dev", "devtmpfs", 0, NULL);
	mount_or_die("pts", "/dev/pts", "devpts", 0, "ptmxmode=0666");
	mount_or_die("shm", "/dev/shm", "tmpfs", 0, "mode=1777");
	mount_or_die("mqueue", "/dev/mqueue", "mqueue", 0, NULL);
	mount_or_die("run", "/run", "tmpfs", 0, "mode=755");
	mount_or_die("cgroup", "/sys/fs/cgroup", "cgroup2", 0, NULL);
	mount_or_die("debug", "/sys/kernel/debug", "debugfs", 0, NULL);
	mount_or_die("trace", "/sys/kernel/tracing", "tracefs", 0, NULL);
	mkdir("/run/lock", 01777);
	mkdir("/run/tmp", 01777);
	chmod("/run/tmp", 01777);
	symlink("/proc/self/fd", "/dev/fd");
	symlink("/proc/self/fd/0", "/dev/stdin");
	symlink("/proc/self/fd/1", "/dev/stdout");
	symlink("/proc/self/fd/2", "/dev/stderr");
}

static void write_to(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd >= 0 && write(fd, text, strlen(text)) < 0)
		say("bad %s: %s\n", path, strerror(errno));
	if (fd >= 0)
		close(fd);
}

static void set_up_rest(const struct request *request)
{
	struct ifreq loopback = { .ifr_name = "lo",
				  .ifr_flags = IFF_UP | IFF_RUNNING };
	struct rlimit files = { 1024, 1024 * 1024 };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &loopback))
		die("loopback");
	close(fd);
	if (sethostname("flexsc-vm", 9) || setrlimit(RLIMIT_NOFILE, &files))
		die("limits");
	if (request->library[0]) {
		mkdir("/lib/modules", 0755);
		if (mount(request->library, "/lib/modules", NULL, MS_BIND,
			  NULL))
			die("/lib/modules");
	}
	/*
	 * So little memory gives 4,096 connections in TIME-WAIT. Those above
	 * are forgotten at once, and an acknowledgement of theirs that was
	 * overtaken by another is answered by a reset: to a client that may
	 * still be in connect(2), which then says EPIPE.
	 */
	write_to("/proc/sys/net/ipv4/tcp_max_tw_buckets", "131072");
}

/* Reads "LENGTH\n" and so many bytes of strings. */
static void read_request(struct request *request)
{
	size_t length = 0, at = 0, got;
	char digit, *all, *end;
	ssize_t n;
	char **next = request->strings;

	while (read(ports[PORT_CONTROL], &digit, 1) == 1 && digit != '\n')
		length = length * 10 + (digit - '0');
	all = calloc(1, length + 1);
	for (got = 0; all && got < length; got += n) {
		n = read(ports[PORT_CONTROL], all + got, length - got);
		if (n <= 0)
			die("request");
	}
	if (!all)
		die("request");
	end = all + length;
	request->folder = all;
	request->library = strchr(request->folder, '\0') + 1;
	request->module = strchr(request->library, '\0') + 1;
	request->parameters = strchr(request->module, '\0') + 1;
	at = strchr(request->parameters, '\0') + 1 - all;
	/* A string of the byte 1 alone separates command and environment. */
	for (; all + at < end; at += strlen(all + at) + 1) {
		if (next >= request->strings + STRINGS_MAX - 2)
			break;
		if (!strcmp(all + at, "\1")) {
			*next++ = NULL;
			request->environment = next;
		} else {
			*next++ = all + at;
		}
	}
	*next = NULL;
}

static void load_module(const struct request *request)
{
	int fd = open(request->module, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || syscall(SYS_finit_module, fd, request->parameters, 0))
		die(request->module);
	close(fd);
}

/* Users of the module may take a moment to go away after their death. */
static void unload_module(const struct request *request)
{
	char name[64];
	const char *base = strrchr(request->module, '/');
	int tries;

	snprintf(name, sizeof(name), "%s", base ? base + 1 : request->module);
	name[strcspn(name, ".")] = '\0';
	for (tries = 0; tries < 500; tries++) {
		if (!syscall(SYS_delete_module, name, O_NONBLOCK))
			return;
		if (errno == ENOENT)
			return; /* the command has unloaded it */
		usleep(10000);
	}
	say("stuck %s: %s\n", name, strerror(errno));
}

static pid_t start(const struct request *request, const int *output,
		   const int *error)
{
	pid_t child = fork();
	sigset_t none;
	int null;

	if (child)
		return child;
	null = open("/dev/null", O_RDWR);
	setsid();
	if (null < 0 || dup2(null, 0) < 0 || dup2(output[1], 1) < 0 ||
	    dup2(error[1], 2) < 0 || chdir(request->folder))
		_exit(126);
	signal(SIGPIPE, SIG_DFL);
	signal(SIGCHLD, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	environ = request->environment;
	execvp(request->strings[0], request->strings);
	dprintf(2, "vm-run: %s: %s\n", request->strings[0], strerror(errno));
	_exit(errno == ENOENT ? 127 : 126);
}

/* Passes on what there is; returns whether there will be more. */
static int relay(int from, int to)
{
	char buffer[16384];
	ssize_t at, n, got = read(from, buffer, sizeof(buffer));

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return 1;
	for (at = 0; at < got; at += n) {
		n = write(to, buffer + at, got - at);
		if (n < 0)
			return 0;
	}
	return got > 0;
}

/* Time is over: what everybody is doing goes into the kernel's log. */
static void tell_state(void)
{
	char byte;

	if (read(ports[PORT_CONTROL], &byte, 1) != 1)
		return;
	write_to("/proc/sys/kernel/printk", "8");
	write_to("/proc/sysrq-trigger", "l");
	write_to("/proc/sysrq-trigger", "t");
	say("told\n");
}

/* For vm-run --profile: where its files are mapped, while it is alive. */
static char maps[65536];

static void note_maps(pid_t child)
{
	char path[32], now[sizeof(maps)];
	size_t length = 0;
	ssize_t got = 1;
	int fd;

	if (!getenv("vm_profile"))
		return;
	snprintf(path, sizeof(path), "/proc/%d/maps", (int)child);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && length < sizeof(now) - 1 && got > 0) {
		got = read(fd, now + length, sizeof(now) - 1 - length);
		length += got > 0 ? got : 0;
	}
	if (fd >= 0)
		close(fd);
	if (!length)
		return;
	now[length] = '\0';
	memcpy(maps, now, length + 1);
}

/* The same of the kernel, with the modules that there are now. */
static void tell_places(void)
{
	char part[16384];
	ssize_t got;
	int fd;

	if (!getenv("vm_profile"))
		return;
	fd = open("/proc/kallsyms", O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && (got = read(fd, part, sizeof(part))) > 0)
		if (write(ports[PORT_CONTROL], part, got) < 0)
			break;
	if (fd >= 0)
		close(fd);
	if (write(ports[PORT_CONTROL], maps, strlen(maps)) < 0)
		return;
	/* It is long: only the other side knows when it has all of it. */
	say("\nplaces\n");
	if (read(ports[PORT_CONTROL], part, 1) < 0)
		return;
}

/*
 * Until the command ends; what it left running is killed then, and what they
 * all had written is still passed on. Returns the command's wait status.
 */
static int wait_for(pid_t child, int output, int error)
{
	const struct timespec second = { 1, 0 };
	struct pollfd from[3] = { { output, POLLIN, 0 },
				  { error, POLLIN, 0 },
				  { ports[PORT_CONTROL], POLLIN, 0 } };
	int i, status, result = -1;
	sigset_t open_to_all;
	pid_t ended;

	sigemptyset(&open_to_all);
	while (from[0].fd >= 0 || from[1].fd >= 0 || result < 0) {
		ppoll(from, 3, &second, &open_to_all);
		if (from[2].revents & POLLIN)
			tell_state();
		note_maps(child);
		for (i = 0; i < 2; i++) {
			if (from[i].fd < 0 || !from[i].revents)
				continue;
			if (!relay(from[i].fd, ports[PORT_OUTPUT + i]))
				from[i].fd = -1;
		}
		while ((ended = waitpid(-1, &status, WNOHANG)) > 0) {
			if (ended != child)
				continue;
			result = status;
			kill(-1, SIGKILL);
		}
	}
	while (waitpid(-1, &status, 0) > 0)
		;
	return result;
}

static void child_ended(int number)
{
	/* Ends ppoll(). */
}

/* Only ppoll() lets the signal in; the command starts with none blocked. */
static void watch_children(void)
{
	sigset_t ends;

	signal(SIGCHLD, child_ended);
	sigemptyset(&ends);
	sigaddset(&ends, SIGCHLD);
	sigprocmask(SIG_BLOCK, &ends, NULL);
}

static unsigned long taint(void)
{
	unsigned long value = 0;
	FILE *file = fopen("/proc/sys/kernel/tainted", "r");

	if (!file || fscanf(file, "%lu", &value) != 1)
		say("bad /proc/sys/kernel/tainted\n");
	if (file)
		fclose(file);
	return value;
}

int main(void)
{
	static struct request request;
	int output[2], error[2], status;
	pid_t child;

	mount_or_die("proc", "/proc", "proc", 0, NULL);
	mount_or_die("sys", "/sys", "sysfs", 0, NULL);
	mount_or_die("dev", "/dev", "devtmpfs", 0, NULL);
	load_own_modules();
	signal(SIGPIPE, SIG_IGN);
	open_ports();
	mount_root();
	read_request(&request);
	set_up_rest(&request);
	if (request.module[0])
		load_module(&request);
	if (pipe2(output, O_CLOEXEC) || pipe2(error, O_CLOEXEC))
		die("pipe");
	watch_children();
	say("started\n");
	child = start(&request, output, error);
	close(output[1]);
	close(error[1]);
	status = child < 0 ? 126 << 8 : wait_for(child, output[0], error[0]);
	tell_places();
	if (request.module[0])
		unload_module(&request);
	say("ended %d %lu\n",
	    WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
	    taint());
	power_off();
}
