/* SPDX-License-Identifier: MIT */
/*
 * Processes whose system calls are audited. Auditing cannot be undone for
 * those that are made later, so this is the last thing that a machine does.
 */
#include "cases.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/netlink.h>
#include <sys/socket.h>

static void enable_audit(void)
{
	struct {
		struct nlmsghdr head;
		struct audit_status status;
	} message = { { sizeof(message), AUDIT_SET, NLM_F_REQUEST | NLM_F_ACK,
			1, 0 },
		      { .mask = AUDIT_STATUS_ENABLED, .enabled = 1 } };
	struct {
		struct nlmsghdr head;
		struct nlmsgerr error;
		char rest[512];
	} answer;
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_AUDIT);

	if (fd < 0)
		skip("this kernel does not audit");
	CHECK_EQ(send(fd, &message, sizeof(message), 0), sizeof(message));
	CHECK(recv(fd, &answer, sizeof(answer), 0) > 0);
	CHECK_EQ(answer.head.nlmsg_type, NLMSG_ERROR);
	CHECK_EQ(answer.error.error, 0);
	close(fd);
}

static void may_audited(const char *value)
{
	int fd = open("/sys/module/flexsc/parameters/audited", O_WRONLY);

	CHECK_EQ(write(fd, value, 1), 1);
	close(fd);
}

static void registers(void *arg)
{
	int wanted = *(int *)arg;
	struct kset set;

	CHECK_EQ(kset_init(&set, 64, 0), wanted);
	if (wanted)
		return;
	CHECK_EQ(CALL(&set, SYS_getpid), getpid());
	kset_fini(&set);
}

static void audited(void)
{
	int refused = -EACCES, served = 0;

	in_child(registers, &served);
	enable_audit();
	in_child(registers, &refused);
	may_audited("1");
	in_child(registers, &served);
	may_audited("0");
	in_child(registers, &refused);
}

int main(void)
{
	static const struct test_case cases[] = { CASE(audited) };

	return run_cases(cases, 1);
}
