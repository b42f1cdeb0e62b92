/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "xen/xen_pmu_mode.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/io.h"

static const char all[] = "all";

static char *xen_pmu_mode_path_of(const struct vp_xen_pmu_mode *mode)
{
	return vp_format("%s/pmu_mode", mode->folder);
}

/* Errors of dom0's kernel and Xen (do_xenpmu_op()) without support. */
static struct vp_error *not_read(int errnum, const char *path)
{
	if (errnum == ENOENT)
		return vp_error_new("%s is missing: dom0's kernel has no driver for Xen's PMU "
				    "(CONFIG_XEN_HAVE_VPMU)",
				    path);
	if (errnum == EOPNOTSUPP || errnum == ENOSYS)
		return vp_error_new(
		    "Xen provides no counters: boot it with vpmu=1, without its watchdog, on a "
		    "processor that its vPMU supports, and with a PV dom0");
	return vp_error_errno(errnum, "cannot read %s", path);
}

static int xen_pmu_mode_read_word(const char *path, char *text, size_t size)
{
	VP_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t count = fd < 0 ? -1 : vp_read(fd, text, size - 1);

	if (count < 0)
		return errno;
	text[count] = 0;
	text[strcspn(text, "\n")] = 0;
	return 0;
}

/* The kernel requires the newline. */
static int write_word(const char *path, const char *word)
{
	VP_AUTO_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC);
	VP_AUTO_FREE char *line = vp_format("%s\n", word);

	return fd < 0 || vp_write(fd, line, strlen(line)) < 0 ? errno : 0;
}

struct vp_error *vp_xen_pmu_mode_read(struct vp_xen_pmu_mode *mode)
{
	VP_AUTO_FREE char *path = xen_pmu_mode_path_of(mode);
	int errnum = xen_pmu_mode_read_word(path, mode->before, sizeof(mode->before));

	if (errnum) {
		mode->before[0] = 0;
		return not_read(errnum, path);
	}
	if (strcmp(mode->before, "off") == 0)
		return vp_error_new("%s is 'off' (expected self, hv or all)", path);
	return NULL;
}

struct vp_error *vp_xen_pmu_mode_take(struct vp_xen_pmu_mode *mode)
{
	VP_AUTO_FREE char *path = xen_pmu_mode_path_of(mode);

	if (strcmp(mode->before, all) == 0)
		return NULL;
	int errnum = write_word(path, all);
	mode->changed = !errnum;
	if (errnum == EBUSY)
		return vp_error_new("guests have owned Xen's counters since their start: write "
				    "'all' to %s before starting them",
				    path);
	return errnum ? vp_error_errno(errnum, "cannot write 'all' to %s", path) : NULL;
}

struct vp_error *vp_xen_pmu_mode_restore(struct vp_xen_pmu_mode *mode)
{
	VP_AUTO_FREE char *path = xen_pmu_mode_path_of(mode);

	if (!mode->changed)
		return NULL;
	mode->changed = false;
	int errnum = write_word(path, mode->before);
	return errnum ? vp_error_errno(errnum, "cannot restore '%s' in %s", mode->before, path)
		      : NULL;
}

struct vp_error *vp_xen_pmu_mode_try(struct vp_xen_pmu_mode *mode)
{
	VP_TRY(vp_xen_pmu_mode_read(mode));
	VP_TRY(vp_xen_pmu_mode_take(mode));
	return vp_xen_pmu_mode_restore(mode);
}
