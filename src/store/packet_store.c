/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "store/packet_store.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

#include "base/alloc.h"

/* A circular buffer: packets are from `tail` to `head`, or, if `wrapped`, from `tail` to `lap_end`
 * and from 0 to `head`. Each follows its description. */
struct vp_packet_store {
	char *room;
	size_t size, head, tail, lap_end, count;
	bool wrapped;
	vp_packet_fn overwritten;
	void *context;
};

struct vp_error *vp_packet_store_new(size_t bytes, vp_packet_fn overwritten, void *context,
				     struct vp_packet_store **ret)
{
	if (bytes < VP_PACKET_STORE_MIN)
		return vp_error_new(
		    "%zu bytes are too little memory to record in: at least %d are needed", bytes,
		    VP_PACKET_STORE_MIN);
	char *room = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (room == MAP_FAILED)
		return vp_error_errno(errno, "cannot allocate %zu bytes of memory to record in",
				      bytes);
	/* Child processes do not need it: copy-on-write would double the memory when it is
	 * overwritten here. */
	if (madvise(room, bytes, MADV_DONTFORK)) {
		int failure = errno;
		munmap(room, bytes);
		return vp_error_errno(failure,
				      "cannot keep %zu bytes of memory from child "
				      "processes",
				      bytes);
	}
	*ret = vp_alloc(sizeof(**ret));
	**ret = (struct vp_packet_store){
	    .room = room, .size = bytes, .overwritten = overwritten, .context = context};
	return NULL;
}

void vp_packet_store_free(struct vp_packet_store *store)
{
	if (!store)
		return;
	munmap(store->room, store->size);
	free(store);
}

static size_t room_of(const struct vp_stored_packet *packet)
{
	return (sizeof(*packet) + packet->size + 7) / 8 * 8;
}

static const struct vp_stored_packet *packet_store_packet_at(const struct vp_packet_store *store,
							     size_t at)
{
	return (const void *)(store->room + at);
}

static void drop_oldest(struct vp_packet_store *store)
{
	const struct vp_stored_packet *oldest = packet_store_packet_at(store, store->tail);

	store->overwritten(store->context, oldest);
	store->tail += room_of(oldest);
	store->count--;
	if (store->wrapped && store->tail == store->lap_end) {
		store->tail = 0;
		store->wrapped = false;
	}
	if (!store->count) {
		store->head = store->tail = 0;
		store->wrapped = false;
	}
}

static size_t free_at_head(const struct vp_packet_store *store)
{
	return (store->wrapped ? store->tail : store->size) - store->head;
}

/* Makes `need` bytes free at `head`. */
static void make_room(struct vp_packet_store *store, size_t need)
{
	while (free_at_head(store) < need) {
		if (store->wrapped) {
			drop_oldest(store);
			continue;
		}
		store->lap_end = store->head;
		store->head = 0;
		store->wrapped = store->count != 0;
	}
}

void vp_packet_store_put(struct vp_packet_store *store, const struct vp_stored_packet *packet)
{
	size_t need = room_of(packet);

	make_room(store, need);
	struct vp_stored_packet *own = (void *)(store->room + store->head);
	*own = *packet;
	own->bytes = (char *)(own + 1);
	memcpy(own + 1, packet->bytes, packet->size);
	store->head += need;
	store->count++;
}

void vp_packet_store_each(const struct vp_packet_store *store, vp_packet_fn take, void *context)
{
	size_t at = store->tail;

	for (size_t i = 0; i < store->count; i++) {
		const struct vp_stored_packet *packet = packet_store_packet_at(store, at);
		take(context, packet);
		at += room_of(packet);
		if (store->wrapped && at == store->lap_end)
			at = 0;
	}
}
