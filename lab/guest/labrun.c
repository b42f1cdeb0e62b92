/* labrun CONF DIR: runs the jobs of CONF natively, the log goes to DIR; ended by SIGTERM. */
#include "schedule.h"

#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
	struct schedule schedule = {0};
	char *line = NULL;
	size_t size = 0;
	FILE *conf;
	int err;

	if (argc != 3) {
		fprintf(stderr, "usage: labrun CONF DIR\n");
		return 2;
	}
	schedule.log_dir = argv[2];
	conf = fopen(argv[1], "re");
	if (!conf) {
		perror(argv[1]);
		return 1;
	}
	for (ssize_t n; (n = getline(&line, &size, conf)) > 0;) {
		char *copy = strndup(line, strcspn(line, "\n"));

		if (!copy || strncmp(copy, "job\t", 4) || schedule_add_job(&schedule, copy + 4)) {
			fprintf(stderr, "labrun: '%s': bad line '%s'\n", argv[1], line);
			return 1;
		}
	}
	err = schedule_run(&schedule, -1);
	if (err)
		fprintf(stderr, "labrun: '%s': %s\n", argv[2], strerror(-err));
	return err ? 1 : 0;
}
