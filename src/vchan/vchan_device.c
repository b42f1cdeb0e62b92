/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vchan/vchan_device.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "base/alloc.h"
#include "base/io.h"

/* From the kernel's include/uapi/xen/evtchn.h, gntalloc.h and gntdev.h, which some systems lack. */
struct bind_interdomain {
	unsigned remote_domain, remote_port;
};
struct alloc_references {
	uint16_t domain, flags;
	uint32_t count;
	uint64_t index;
	uint32_t references[];
};
struct map_references {
	uint32_t count, pad;
	uint64_t index;
	struct {
		uint32_t domain, reference;
	} references[];
};
struct unmap_notify {
	uint64_t index;
	uint32_t action, port;
};
enum { WRITABLE = 1, CLEAR_BYTE = 1, SEND_EVENT = 2 };
#define REQUEST(type, number, size) _IOC(_IOC_NONE, type, number, size)
#define BIND_INTERDOMAIN REQUEST('E', 1, sizeof(struct bind_interdomain))
#define BIND_UNBOUND REQUEST('E', 2, sizeof(unsigned))
#define NOTIFY REQUEST('E', 4, sizeof(unsigned))
#define RESTRICT_DOMAIN REQUEST('E', 6, sizeof(uint16_t))
#define ALLOC_REFERENCES REQUEST('G', 5, 24) /* with one reference, and padding */
#define MAP_REFERENCES REQUEST('G', 0, sizeof(struct map_references) + 8)
#define UNMAP_NOTIFY REQUEST('G', 7, sizeof(struct unmap_notify))

_Static_assert(NOTIFY == VP_VCHAN_NOTIFY_REQUEST, "IOCTL_EVTCHN_NOTIFY");

struct vp_error *vp_vchan_device_open(const char *path, int *ret)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);

	*ret = fd;
	if (fd >= 0)
		return NULL;
	if (errno == ENOENT || errno == ENXIO || errno == ENODEV)
		return vp_error_new("'%s' is missing: load the kernel's module (modprobe xen-%s)",
				    path, strrchr(path, '/') + 1);
	return vp_error_errno(errno, "cannot open '%s'", path);
}

static bool evtchn_ring(const struct vp_vchan_bell *bell)
{
	unsigned port = bell->port;

	return !ioctl(bell->fd, NOTIFY, &port);
}

/* Reads the ports of pending events and unmasks them. */
static bool evtchn_receive(const struct vp_vchan_bell *bell)
{
	uint32_t port;
	ssize_t size = vp_read(bell->fd, &port, sizeof(port));

	return size == sizeof(port) && vp_write(bell->fd, &port, sizeof(port)) == sizeof(port);
}

static struct vp_error *open_bell(struct vp_vchan_bell *bell)
{
	*bell = (struct vp_vchan_bell){.ring = evtchn_ring, .receive = evtchn_receive};
	return vp_vchan_device_open(VP_VCHAN_EVTCHN, &bell->fd);
}

struct vp_error *vp_vchan_bell_offer(uint16_t domain, struct vp_vchan_bell *ret)
{
	unsigned wanted = domain;

	VP_TRY(open_bell(ret));
	int port = ioctl(ret->fd, BIND_UNBOUND, &wanted);
	if (port < 0)
		return vp_error_errno(errno, "cannot create an event channel");
	ret->port = (uint32_t)port;
	return NULL;
}

struct vp_error *vp_vchan_bell_bind(uint16_t domain, uint32_t port, struct vp_vchan_bell *ret,
				    bool *taken)
{
	struct bind_interdomain wanted = {domain, port};

	*taken = false;
	VP_TRY(open_bell(ret));
	/* From here on the device accepts this domain only. */
	if (ioctl(ret->fd, RESTRICT_DOMAIN, &domain))
		return vp_error_errno(errno, "cannot restrict '" VP_VCHAN_EVTCHN "' to a domain");
	int own = ioctl(ret->fd, BIND_INTERDOMAIN, &wanted);
	if (own < 0) {
		*taken = true;
		return vp_error_errno(errno, "its event channel %u cannot be bound", port);
	}
	ret->port = (uint32_t)own;
	return NULL;
}

static struct vp_error *map_device(int fd, uint64_t index, uint32_t pages, bool may_write,
				   char **ret)
{
	int protection = PROT_READ | (may_write ? PROT_WRITE : 0);
	char *at =
	    mmap(NULL, (size_t)pages * VP_VCHAN_PAGE, protection, MAP_SHARED, fd, (off_t)index);

	if (at == MAP_FAILED)
		return vp_error_errno(errno, "cannot map %u shared pages", pages);
	*ret = at;
	return NULL;
}

static struct vp_error *vchan_request_end_notice(int fd, uint64_t index, uint32_t live,
						 const struct vp_vchan_bell *bell)
{
	struct unmap_notify end = {
	    .index = index + live, .action = CLEAR_BYTE | SEND_EVENT, .port = bell->port};

	return ioctl(fd, UNMAP_NOTIFY, &end)
		   ? vp_error_errno(errno, "cannot set up the notification of the peer")
		   : NULL;
}

/* *index: offset of the pages in the device. */
static struct vp_error *share(int fd, uint16_t domain, uint32_t pages, uint32_t *references,
			      uint64_t *index, char **ret)
{
	VP_AUTO_FREE struct alloc_references *alloc =
	    vp_alloc(sizeof(*alloc) + (pages + 1) * sizeof(uint32_t));

	*alloc = (struct alloc_references){.domain = domain, .flags = WRITABLE, .count = pages};
	if (ioctl(fd, ALLOC_REFERENCES, alloc))
		return vp_error_errno(errno, "cannot share %u pages by '" VP_VCHAN_GNTALLOC "'",
				      pages);
	memcpy(references, alloc->references, pages * sizeof(*references));
	*index = alloc->index;
	return map_device(fd, alloc->index, pages, true, ret);
}

struct vp_error *vp_vchan_share(int gntalloc, uint16_t domain, uint32_t pages, uint32_t *references,
				char **ret)
{
	uint64_t index = 0;

	return share(gntalloc, domain, pages, references, &index, ret);
}

struct vp_error *vp_vchan_share_page(int gntalloc, uint16_t domain, uint32_t live,
				     const struct vp_vchan_bell *bell, uint32_t *reference,
				     struct vp_vchan_page **ret)
{
	uint64_t index = 0;
	char *page = NULL;

	VP_TRY(share(gntalloc, domain, 1, reference, &index, &page));
	*ret = (struct vp_vchan_page *)page;
	return vchan_request_end_notice(gntalloc, index, live, bell);
}

static struct vp_error *map_foreign(int fd, uint16_t domain, uint32_t pages,
				    const uint32_t *references, bool may_write, uint64_t *index,
				    char **ret)
{
	VP_AUTO_FREE struct map_references *map =
	    vp_alloc(sizeof(*map) + pages * sizeof(map->references[0]));

	*map = (struct map_references){.count = pages};
	for (uint32_t i = 0; i < pages; i++) {
		map->references[i].domain = domain;
		map->references[i].reference = references[i];
	}
	if (ioctl(fd, MAP_REFERENCES, map))
		return vp_error_errno(errno, "cannot map %u pages of domain %u", pages, domain);
	*index = map->index;
	return map_device(fd, map->index, pages, may_write, ret);
}

struct vp_error *vp_vchan_map(int gntdev, uint16_t domain, uint32_t pages,
			      const uint32_t *references, bool may_write, char **ret)
{
	uint64_t index = 0;

	return map_foreign(gntdev, domain, pages, references, may_write, &index, ret);
}

struct vp_error *vp_vchan_map_page(int gntdev, uint16_t domain, uint32_t reference, uint32_t live,
				   const struct vp_vchan_bell *bell, struct vp_vchan_page **ret)
{
	uint64_t index = 0;
	char *page = NULL;

	VP_TRY(map_foreign(gntdev, domain, 1, &reference, true, &index, &page));
	*ret = (struct vp_vchan_page *)page;
	return vchan_request_end_notice(gntdev, index, live, bell);
}
