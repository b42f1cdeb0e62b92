/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * courier OWN PEER [--rounds N] [--work US]
 *
 * Of two guests, whose interface eth0 gets the address 10.9.0.OWN, the one with --rounds sends the
 * other a datagram and waits for its answer, N times. The other computes for US microseconds (2000)
 * before it answers, and ends when it is told to. At the end: "courier: pid=… rounds=… ns=…", how
 * long answers were waited for, or were worked on, by its own clock.
 */
#include "common.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PORT = 709, NETWORK = 10 << 24 | 9 << 16, FIRST_TRIES = 100, TRY_MS = 100 };

static void expect(int holds, const char *what)
{
	if (!holds)
		work_usage("%s failed: %s", what, strerror(errno));
}

static struct sockaddr_in address_of(unsigned number)
{
	return (struct sockaddr_in){.sin_family = AF_INET,
				    .sin_port = htons(PORT),
				    .sin_addr.s_addr = htonl(NETWORK | number)};
}

/* A socket on eth0, which is up then. */
static int open_socket(unsigned own)
{
	struct ifreq request = {.ifr_name = "eth0"};
	struct sockaddr_in address = address_of(own), mask = address_of(0);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	expect(fd >= 0, "socket");
	memcpy(&request.ifr_addr, &address, sizeof(address));
	expect(!ioctl(fd, SIOCSIFADDR, &request), "the address of eth0");
	mask.sin_addr.s_addr = htonl(0xffffff00);
	memcpy(&request.ifr_addr, &mask, sizeof(mask));
	expect(!ioctl(fd, SIOCSIFNETMASK, &request), "the netmask of eth0");
	expect(!ioctl(fd, SIOCGIFFLAGS, &request), "the flags of eth0");
	request.ifr_flags |= IFF_UP | IFF_RUNNING;
	expect(!ioctl(fd, SIOCSIFFLAGS, &request), "eth0 up");
	expect(!bind(fd, (void *)&address, sizeof(address)), "bind");
	return fd;
}

/* The other guest may not be there yet. */
static void meet(int fd)
{
	struct pollfd answer = {.fd = fd, .events = POLLIN};
	char byte = 'h';

	for (int i = 0; i < FIRST_TRIES; i++) {
		(void)!send(fd, &byte, 1, 0);
		if (poll(&answer, 1, TRY_MS) == 1 && recv(fd, &byte, 1, MSG_DONTWAIT) == 1)
			return;
	}
	expect(0, "the other guest's answer");
}

static uint64_t call(int fd, long rounds)
{
	uint64_t begin = work_now();
	char byte = 'r';

	for (long i = 0; i < rounds; i++)
		expect(send(fd, &byte, 1, 0) == 1 && recv(fd, &byte, 1, 0) == 1, "a round");
	uint64_t waited = work_now() - begin;
	expect(!send(fd, &byte, 0, 0), "the end");
	return waited;
}

static uint64_t serve(int fd, uint64_t work_ns, long *rounds)
{
	uint64_t worked = 0;
	char byte;

	for (ssize_t got; (got = recv(fd, &byte, 1, 0)) != 0;) {
		uint64_t begin = work_now();
		if (got < 0) /* the other one's socket was not there yet */
			continue;
		while (byte == 'r' && work_now() - begin < work_ns)
			;
		worked +=
		    byte == 'r' ? work_now() - begin : 0; /* the answer is out before send() ends */
		expect(send(fd, &byte, 1, 0) == 1, "send");
		*rounds += byte == 'r';
	}
	return worked;
}

int main(int argc, char **argv)
{
	long rounds = 0, done = 0;
	double work_us = 2000;

	for (int i = 3; i + 1 < argc; i += 2)
		if (!strcmp(argv[i], "--rounds"))
			rounds = (long)work_number(argv[i], argv[i + 1]);
		else if (!strcmp(argv[i], "--work"))
			work_us = work_number(argv[i], argv[i + 1]);
		else
			work_usage("expected --rounds or --work, not '%s'", argv[i]);
	if (argc < 3 || argc % 2 == 0)
		work_usage("expected OWN PEER [--rounds N] [--work US]");
	work_init("courier");
	struct sockaddr_in peer = address_of((unsigned)atoi(argv[2]));
	int fd = open_socket((unsigned)atoi(argv[1]));
	expect(!connect(fd, (void *)&peer, sizeof(peer)), "connect");
	prctl(PR_SET_NAME, rounds ? "courier-caller" : "courier-server");
	if (rounds)
		meet(fd);
	uint64_t ns = rounds ? call(fd, rounds) : serve(fd, (uint64_t)(work_us * 1000), &done);
	printf("courier: pid=%d rounds=%ld ns=%llu\n", (int)getpid(), rounds ? rounds : done,
	       (unsigned long long)ns);
	return 0;
}
