/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cmd/common/terminal.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/file.h"
#include "base/io.h"
#include "base/macros.h"

#define ENTER "\033[?1049h\033[?25l" /* alternate screen, hidden cursor */
#define LEAVE "\033[m\033[?25h\033[?1049l"

/* Used by a signal handler, which restores the terminal. */
static struct termios before;
static volatile sig_atomic_t is_begun, has_keys, is_changed;

static void terminal_write_all(const char *text)
{
	if (vp_fd_write_all(STDOUT_FILENO, text, strlen(text)))
		return; /* the error cannot be reported */
}

static void terminal_enter(void)
{
	struct termios raw = before;

	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	raw.c_cc[VMIN] = 0;
	raw.c_cc[VTIME] = 0;
	if (has_keys)
		tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	terminal_write_all(ENTER);
}

static void terminal_leave(void)
{
	terminal_write_all(LEAVE);
	if (has_keys)
		tcsetattr(STDIN_FILENO, TCSANOW, &before);
}

static void set_handler(int signal, void (*handler)(int), int flags)
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = flags};

	sigaction(signal, &action, NULL);
}

/* Restores the terminal before a signal ends or stops the process. */
static void on_end(int signal)
{
	if (is_begun)
		terminal_leave();
	raise(signal); /* with the default action: the handler was reset */
}

static void on_continue(int signal)
{
	set_handler(SIGTSTP, on_end, (int)SA_RESETHAND);
	if (is_begun)
		terminal_enter();
	is_changed = 1;
}

static void on_size(int signal)
{
	is_changed = 1;
}

static void handle_signals(void)
{
	static const int ends[] = {SIGSEGV, SIGBUS,  SIGFPE,  SIGILL, SIGABRT, SIGTRAP,
				   SIGSYS,  SIGQUIT, SIGPIPE, SIGHUP, SIGTSTP};

	for (size_t i = 0; i < VP_ARRAY_SIZE(ends); i++)
		set_handler(ends[i], on_end, (int)SA_RESETHAND);
	set_handler(SIGCONT, on_continue, 0);
	set_handler(SIGWINCH, on_size, 0);
}

bool vp_terminal_begin(void)
{
	if (!isatty(STDOUT_FILENO))
		return false;
	has_keys = isatty(STDIN_FILENO) && tcgetattr(STDIN_FILENO, &before) == 0;
	handle_signals();
	is_begun = 1;
	terminal_enter();
	return true;
}

void vp_terminal_end(void)
{
	if (is_begun)
		terminal_leave();
	is_begun = 0;
}

bool vp_terminal_has_keys(void)
{
	return has_keys;
}

static struct vp_terminal_size terminal_size_of(int fd)
{
	struct winsize size = {0};
	bool known = ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col && size.ws_row;

	return known ? (struct vp_terminal_size){size.ws_col, size.ws_row}
		     : (struct vp_terminal_size){80, 24};
}

struct vp_terminal_size vp_terminal_size(void)
{
	return terminal_size_of(STDOUT_FILENO);
}

size_t vp_terminal_width(void)
{
	return isatty(STDOUT_FILENO) ? vp_terminal_size().width : 0;
}

size_t vp_terminal_error_width(void)
{
	return isatty(STDERR_FILENO) ? terminal_size_of(STDERR_FILENO).width : 0;
}

size_t vp_terminal_read(int ms, char *bytes, size_t size)
{
	struct pollfd keyboard = {.fd = has_keys ? STDIN_FILENO : -1, .events = POLLIN};

	if (vp_poll_or_signal(&keyboard, 1, ms) <= 0)
		return 0;
	ssize_t got = vp_read(STDIN_FILENO, bytes, size);
	if (got <= 0)
		has_keys = 0; /* end of keyboard input */
	return got > 0 ? (size_t)got : 0;
}

bool vp_terminal_changed(void)
{
	bool changed = is_changed;

	is_changed = 0;
	return changed;
}

/* Each line overwrites the previous one, without flicker. */
void vp_terminal_show(const struct vp_buffer *lines, struct vp_buffer *out)
{
	const char *at = lines->bytes, *end = lines->bytes + lines->size;

	vp_buffer_string(out, "\033[H");
	while (at < end) {
		const char *feed = memchr(at, '\n', (size_t)(end - at));
		size_t size = (size_t)((feed ? feed : end) - at);
		vp_buffer_append(out, at, size);
		at += size + 1;
		/* No line feed after the last line: the screen would scroll. */
		vp_buffer_string(out, at < end ? "\033[K\r\n" : "\033[K");
	}
	vp_buffer_string(out, "\033[J");
}
