/* SPDX-License-Identifier: GPL-2.0-or-later */
/* make_recording_of_a_wait DIR: a recording of a guest's thread that waits, with the events of host
 * and guest. */
#include "../unit/made_wait.h"

int main(int argc, char **argv)
{
	if (argc != 2) {
		fputs("usage: make_recording_of_a_wait DIR\n", stderr);
		return 2;
	}
	make_wait(argv[1], true);
	return 0;
}
