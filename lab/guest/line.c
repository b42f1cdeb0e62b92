#include "line.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#define CONSOLE "/dev/hvc0"
#define MARK                                                                                       \
	"vlab:" /* what the lines begin with; one without anything after it is the end of the      \
		   stream */
#define MARK_SIZE (sizeof(MARK) - 1)
#define CHUNK 512 /* bytes in a line that is sent; those that come have up to 1024 */

static const char digits[] = "0123456789abcdef";

static void write_all(int fd, const char *data, size_t size)
{
	while (size) {
		ssize_t n = write(fd, data, size);

		if (n < 0 && errno != EINTR && errno != EAGAIN)
			return;
		if (n > 0) {
			data += n;
			size -= (size_t)n;
		}
	}
}

static void send_line(int console, const unsigned char *data, size_t size)
{
	char line[MARK_SIZE + 2 * CHUNK + 1] = MARK;
	char *end = line + MARK_SIZE;

	for (size_t i = 0; i < size; i++) {
		*end++ = digits[data[i] >> 4];
		*end++ = digits[data[i] & 15];
	}
	*end++ = '\n';
	write_all(console, line, (size_t)(end - line));
}

static int digit(char c)
{
	const char *place = c ? strchr(digits, c) : NULL;

	return place ? (int)(place - digits) : -1;
}

static void take_line(int fd, const char *line, size_t size)
{
	char data[2048];
	size_t n = 0;

	if (size < MARK_SIZE || memcmp(line, MARK, MARK_SIZE))
		return;
	if (size == MARK_SIZE)
		shutdown(fd, SHUT_WR);
	for (size_t i = MARK_SIZE; i + 1 < size && n < sizeof(data); i += 2)
		data[n++] = (char)(digit(line[i]) << 4 | digit(line[i + 1]));
	write_all(fd, data, n);
}

/* What came from the console; an incomplete line stays in the buffer. */
static void take(int fd, char *buffer, size_t *used)
{
	size_t begin = 0;

	for (size_t i = 0; i < *used; i++)
		if (buffer[i] == '\n') {
			take_line(fd, buffer + begin, i - begin);
			begin = i + 1;
		}
	memmove(buffer, buffer + begin, *used - begin);
	*used -= begin;
}

static void pass_on(int console, int fd)
{
	static char buffer[8192];
	size_t used = 0;
	struct pollfd both[] = {{.fd = console, .events = POLLIN}, {.fd = fd, .events = POLLIN}};

	while (poll(both, 2, -1) >= 0 || errno == EINTR) {
		unsigned char data[CHUNK];
		ssize_t n;

		if (both[0].revents) {
			n = read(console, buffer + used, sizeof(buffer) - used);
			if (n <= 0)
				return;
			used += (size_t)n;
			take(fd, buffer, &used);
		}
		if (both[1].revents) {
			n = read(fd, data, sizeof(data));
			if (n < 0)
				return;
			send_line(console, data, (size_t)n);
			if (!n)
				both[1].fd = -1;
		}
	}
}

/* Neither translates nor repeats what passes; and the kernel does not print in the midst of it. */
static int open_console(void)
{
	struct termios settings;
	int fd = open("/proc/sys/kernel/printk", O_WRONLY | O_CLOEXEC);

	if (fd >= 0) {
		write_all(fd, "1", 1);
		close(fd);
	}
	fd = open(CONSOLE, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (!tcgetattr(fd, &settings)) {
		cfmakeraw(&settings);
		tcsetattr(fd, TCSANOW, &settings);
	}
	return fd;
}

int line_connect(void)
{
	int ends[2];
	int console = open_console();
	pid_t pid;

	if (console < 0)
		return console;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		return -errno;
	pid = fork();
	if (pid < 0)
		return -errno;
	if (!pid) {
		close(ends[0]);
		pass_on(console, ends[1]);
		_exit(0);
	}
	close(ends[1]);
	close(console);
	return ends[0];
}
