/*
 * PID 1 of a lab guest: brings the guest up, says "ready" to the lab host over vsock or its
 * console, runs the workloads from "go" to "finish", sends the files of /out back and switches the
 * guest off.
 */
#include "line.h"
#include "schedule.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/vm_sockets.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/klog.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define CONNECT_TRIES 300
#define CONNECT_PAUSE_US 50000
#define AGENT_TRIES 1200

/* Actions of klogctl() (syslog(2)), which glibc gives no names. */
enum { KLOG_READ_ALL = 3, KLOG_CONSOLE_LEVEL = 8, KLOG_SIZE = 10 };
/* The kernel's warnings reach the console, and everything worse. */
enum { LEVEL_WARNING = 4 };

struct guest {
	char name[64];
	unsigned int port; /* vsock port of the lab host's driver */
	bool console;      /* it listens there instead */
	bool agent, kallsyms, truth;
	struct schedule schedule;
};

static void complain(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	fprintf(stderr, "lab guest: ");
	vfprintf(stderr, format, ap);
	fprintf(stderr, "\n");
	va_end(ap);
}

static void power_off(void)
{
	sync();
	reboot(RB_POWER_OFF);
	_exit(0);
}

static void mount_all(void)
{
	static const struct {
		const char *type, *where;
		bool optional;
		const char *options;
	} mounts[] = {
	    {"proc", "/proc", false, NULL},
	    {"sysfs", "/sys", false, NULL},
	    {"devtmpfs", "/dev", false, NULL},
	    {"tmpfs", "/tmp", false, NULL},
	    {"tmpfs", "/run", false, NULL},
	    {"tmpfs", "/out", false, "mode=0755"},
	    {"devpts", "/dev/pts", true, NULL},
	    {"tmpfs", "/dev/shm", true, NULL},
	    {"tracefs", "/sys/kernel/tracing", true, NULL},
	    {"debugfs", "/sys/kernel/debug", true, NULL},
	    {"bpf", "/sys/fs/bpf", true, NULL},
	    {"cgroup2", "/sys/fs/cgroup", true, NULL},
	};

	for (size_t i = 0; i < sizeof(mounts) / sizeof(mounts[0]); i++) {
		mkdir(mounts[i].where, 0755);
		if (mount(mounts[i].type, mounts[i].where, mounts[i].type, 0, mounts[i].options) &&
		    !mounts[i].optional)
			complain("mount %s: %s", mounts[i].where, strerror(errno));
	}
}

/* Standard streams: the kernel gives PID 1 none when /dev/console is not in the initramfs. */
static void open_console(void)
{
	int fd = open("/dev/console", O_RDWR);

	for (int i = 0; fd >= 0 && i < 3; i++)
		dup2(fd, i);
}

static void load_modules(void)
{
	char *line = NULL;
	size_t size = 0;
	FILE *list = fopen("/lab/modules", "re");

	if (!list)
		return;
	for (ssize_t n; (n = getline(&line, &size, list)) > 0;) {
		int fd;

		line[strcspn(line, "\n")] = 0;
		fd = open(line, O_RDONLY | O_CLOEXEC);
		if (fd < 0 || (syscall(SYS_finit_module, fd, "", 0) && errno != EEXIST))
			complain("module '%s': %s", line, strerror(errno));
		if (fd >= 0)
			close(fd);
	}
	free(line);
	fclose(list);
}

static void loopback_up(void)
{
	struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd >= 0) {
		ioctl(fd, SIOCSIFFLAGS, &request);
		close(fd);
	}
}

static bool is_yes(const char *value)
{
	return !strcmp(value, "yes");
}

/* /lab/conf: one "KEY<tab>VALUE..." per line, written by vlab. */
static void read_conf(struct guest *guest)
{
	char *line = NULL;
	size_t size = 0;
	FILE *conf = fopen("/lab/conf", "re");

	if (!conf) {
		complain("/lab/conf: %s", strerror(errno));
		return;
	}
	for (ssize_t n; (n = getline(&line, &size, conf)) > 0;) {
		char *copy = strndup(line, strcspn(line, "\n"));
		char *value = copy ? strchr(copy, '\t') : NULL;

		if (!value)
			continue;
		*value++ = 0;
		if (!strcmp(copy, "name"))
			snprintf(guest->name, sizeof(guest->name), "%s", value);
		else if (!strcmp(copy, "port"))
			guest->port = (unsigned int)strtoul(value, NULL, 10);
		else if (!strcmp(copy, "console"))
			guest->console = is_yes(value);
		else if (!strcmp(copy, "agent"))
			guest->agent = is_yes(value);
		else if (!strcmp(copy, "kallsyms"))
			guest->kallsyms = is_yes(value);
		else if (!strcmp(copy, "truth"))
			guest->truth = is_yes(value);
		else if (strcmp(copy, "job") || schedule_add_job(&guest->schedule, value))
			complain("/lab/conf: bad line '%s'", copy);
	}
	free(line);
	fclose(conf);
	sethostname(guest->name, strlen(guest->name));
}

/* Copies a file of unknown size, such as those of /proc. */
static void copy_file(const char *from, const char *to)
{
	char buffer[65536];
	int in = open(from, O_RDONLY | O_CLOEXEC);
	int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	for (ssize_t n; in >= 0 && out >= 0 && (n = read(in, buffer, sizeof(buffer))) > 0;)
		if (write(out, buffer, (size_t)n) != n)
			complain("'%s': %s", to, strerror(errno));
	if (in >= 0)
		close(in);
	if (out >= 0)
		close(out);
}

/* The kernel's whole log: the tests look for warnings and crashed programs in it. */
static void save_kernel_log(const char *path)
{
	int size = klogctl(KLOG_SIZE, NULL, 0);
	char *text = size > 0 ? malloc((size_t)size) : NULL;
	int n = text ? klogctl(KLOG_READ_ALL, text, size) : -1;
	FILE *log = n >= 0 ? fopen(path, "we") : NULL;

	if (!log || fwrite(text, 1, (size_t)n, log) != (size_t)n || fclose(log))
		complain("'%s': %s", path, strerror(errno));
	free(text);
}

static void start_agent(void)
{
	pid_t pid = fork();
	int fd;

	if (pid)
		return;
	setsid();
	fd = open("/out/agent.log", O_WRONLY | O_CREAT | O_APPEND, 0644);
	if (fd >= 0) {
		dup2(fd, 1);
		dup2(fd, 2);
	}
	execl("/usr/bin/vperf-agent", "vperf-agent", "serve", (char *)NULL);
	complain("cannot execute vperf-agent: %s", strerror(errno));
	_exit(127);
}

/* The agent's socket is there once it watches: what starts before that would escape it. */
static void wait_for_agent(void)
{
	for (int i = 0; i < AGENT_TRIES && access("/run/vperf-agent.sock", F_OK); i++)
		usleep(CONNECT_PAUSE_US);
}

static int connect_host(unsigned int port)
{
	struct sockaddr_vm address = {
	    .svm_family = AF_VSOCK, .svm_cid = VMADDR_CID_HOST, .svm_port = port};

	for (int i = 0; i < CONNECT_TRIES; i++) {
		int fd = socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0);

		if (fd >= 0 && !connect(fd, (struct sockaddr *)&address, sizeof(address)))
			return fd;
		if (fd >= 0)
			close(fd);
		usleep(CONNECT_PAUSE_US);
	}
	return -errno;
}

/* Waits for one line. Those that come between "go" and the end are the schedule's. */
static bool wait_line(int fd, const char *want)
{
	char line[16];
	size_t n = 0;

	while (n < sizeof(line) - 1 && read(fd, line + n, 1) == 1 && line[n] != '\n')
		n++;
	line[n] = 0;
	return !strcmp(line, want);
}

static void send_files(int fd)
{
	pid_t pid;

	dprintf(fd, "files\n");
	pid = fork();
	if (pid == 0) {
		dup2(fd, 1);
		execl("/bin/busybox", "tar", "-c", "-C", "/out", ".", (char *)NULL);
		_exit(127);
	}
	waitpid(pid, NULL, 0);
	shutdown(fd, SHUT_WR);
	/* The host closes when it has everything. */
	wait_line(fd, "");
}

static void run_guest(struct guest *guest)
{
	int fd;
	int err;

	if (guest->agent)
		start_agent();
	fd = guest->console ? line_connect() : connect_host(guest->port);
	if (fd < 0) {
		complain("cannot connect to the lab host over %s: %s",
			 guest->console ? "the console" : "vsock", strerror(-fd));
		return;
	}
	if (guest->agent)
		wait_for_agent();
	dprintf(fd, "ready %s\n", guest->name);
	if (!wait_line(fd, "go"))
		return;
	if (guest->truth)
		copy_file("/proc/stat", "/out/stat.before");
	err = schedule_run(&guest->schedule, fd);
	if (err)
		complain("workloads: %s", strerror(-err));
	if (guest->truth)
		copy_file("/proc/stat", "/out/stat.after");
	if (guest->kallsyms)
		copy_file("/proc/kallsyms", "/out/kallsyms");
	save_kernel_log("/out/kernel.log");
	send_files(fd);
}

int main(void)
{
	static struct guest guest = {.schedule.log_dir = "/out"};

	if (getpid() != 1) {
		fprintf(stderr, "this is the init of a lab guest; it runs as PID 1 only\n");
		return 2;
	}
	mount_all();
	open_console();
	setenv("PATH", "/lab/bin:/usr/bin:/usr/sbin:/bin:/sbin", 1);
	setenv("HOME", "/", 1);
	read_conf(&guest);
	if (!guest.console) /* there the console carries the lab's own lines */
		klogctl(KLOG_CONSOLE_LEVEL, NULL, LEVEL_WARNING + 1);
	load_modules();
	loopback_up();
	run_guest(&guest);
	power_off();
}
