/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The search for a kernel in a guest's memory: where it looks, what it costs, what it touches. */
#include "opened_guest.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define KIB 1024ULL
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)
#define SECOND 1000000000ULL
#define MS 1000000ULL
#define PAGE_MASK (~(uint64_t)(VP_GUEST_PAGE - 1))

/* A guest with its image wherever it is, and a host whose clocks go on when memory is read. */
struct host {
	struct vp_guest_memory memory;
	uint64_t image; /* where it is; 0: nowhere */
	uint64_t decoy; /* another guest's kernel, or one of before a reboot; 0: none */
	uint64_t full_from, full_to; /* backed with zeros */
	bool lies;                   /* there is a kernel that is none every 2 MiB */
	unsigned hole_every;         /* every such page is not, in there; 0: all are */
	/* What was done. */
	uint64_t bytes, reads, first_read, asked;
	bool touched; /* a page that is not backed */
	/* The clocks, and what a read costs. */
	uint64_t wall, cpu, ps_of_byte;
	/* The most that was used beyond what is allowed, when it slept or stopped. */
	uint64_t slept;
	int64_t cpu_beyond, bytes_beyond;
};

static bool is_in(uint64_t at, uint64_t from, uint64_t size)
{
	return at - from < size;
}

/* What is there of an image, or NULL. */
static const char *image_at(const struct host *host, uint64_t page)
{
	uint64_t in_place = page % (2 * MIB);

	if (host->image && is_in(page, host->image, BUILT_IMAGE))
		return guest.image + (page - host->image);
	if (host->decoy && is_in(page, host->decoy, BUILT_IMAGE))
		return guest.image + (page - host->decoy);
	return host->lies && in_place < BUILT_IMAGE ? guest.image + in_place : NULL;
}

static bool is_backed(const struct host *host, uint64_t gpa)
{
	uint64_t page = gpa & PAGE_MASK;

	if (image_at(host, page) || page < BUILT_LOW)
		return true;
	bool full = page >= host->full_from && page < host->full_to;
	return full && !(host->hole_every && page / VP_GUEST_PAGE % host->hole_every == 0);
}

static void report_unbacked(void *context, uint64_t hva, size_t pages, unsigned char *ret)
{
	struct host *host = context;

	host->asked += pages;
	for (size_t i = 0; i < pages; i++)
		ret[i] = is_backed(host, hva + i * VP_GUEST_PAGE);
}

static void fill(const struct host *host, uint64_t gpa, char *bytes, size_t size)
{
	memset(bytes, 0, size);
	for (size_t at = 0, piece; at < size; at += piece) {
		uint64_t page = (gpa + at) & PAGE_MASK, inside = gpa + at - page;
		const char *from = image_at(host, page);
		piece = VP_GUEST_PAGE - inside < size - at ? VP_GUEST_PAGE - inside : size - at;
		if (!from && page < BUILT_LOW)
			from = guest.low + page;
		if (from)
			memcpy(bytes + at, from + inside, piece);
	}
}

static bool read_host(void *context, uint64_t hva, void *bytes, size_t size)
{
	struct host *host = context;

	for (uint64_t page = hva & PAGE_MASK; page < hva + size; page += VP_GUEST_PAGE)
		host->touched |= !is_backed(host, page);
	if (!host->reads++)
		host->first_read = hva;
	host->bytes += size;
	host->cpu += size * host->ps_of_byte / 1000;
	host->wall += size * host->ps_of_byte / 1000;
	fill(host, hva, bytes, size);
	return true;
}

static uint64_t wall(void *context)
{
	return ((struct host *)context)->wall;
}

static uint64_t cpu(void *context)
{
	return ((struct host *)context)->cpu;
}

/* What was used since the begin, beyond what is allowed until now. */
static void note_use(struct host *host)
{
	const uint64_t second = SECOND;
	int64_t by_cpu = (int64_t)(host->cpu - VP_PACE_CPU_MS_AT_ONCE * MS) -
			 (int64_t)(host->wall * VP_PACE_CPU_PERCENT / 100);
	int64_t by_read = (int64_t)host->bytes - (int64_t)(VP_PACE_MIB_AT_ONCE * MIB) -
			  (int64_t)((__uint128_t)host->wall * (VP_PACE_MIB * MIB) / second);

	host->cpu_beyond = by_cpu > host->cpu_beyond ? by_cpu : host->cpu_beyond;
	host->bytes_beyond = by_read > host->bytes_beyond ? by_read : host->bytes_beyond;
}

static void sleep_for(void *context, uint64_t ns)
{
	struct host *host = context;

	note_use(host);
	host->wall += ns;
	host->slept += ns;
}

static struct host new_host(uint64_t size)
{
	struct host host = {.memory = {.read = read_host, .backed = report_unbacked},
			    .ps_of_byte = 250, /* 4 GB/s */
			    .cpu_beyond = INT64_MIN,
			    .bytes_beyond = INT64_MIN};

	/* As QEMU has it, with a hole for devices below 4 GiB. */
	vp_guest_memory_add(&host.memory, 0, size < 3 * GIB ? size : 3 * GIB, 0);
	if (size > 3 * GIB)
		vp_guest_memory_add(&host.memory, 4 * GIB, size - 3 * GIB, 4 * GIB);
	return host;
}

static void put_kernel(struct host *host, uint64_t gpa)
{
	built_kernel(&guest, BUILT_NEW);
	built_move(&guest, gpa);
	host->image = gpa;
}

/* Searches until it has found something or ends, in slices of half a second. */
static enum vp_scan_result search(struct host *host, uint64_t remembered,
				  const vp_kernel_packs *packs, struct vp_guest_view *found)
{
	static const vp_kernel_packs none;
	const struct vp_throttle_clock clock = {host, wall, cpu, sleep_for};
	const struct vp_scan_setup setup = {.memory = &host->memory,
					    .packs = packs ? packs : &none,
					    .remembered = remembered,
					    .clock = &clock};
	enum vp_scan_result result = VP_SCAN_GOES_ON;

	host->memory.context = host;
	struct vp_kernel_scan *scan = vp_kernel_scan_new(&setup);
	while (result == VP_SCAN_GOES_ON) {
		uint64_t before = host->wall;
		result = vp_kernel_scan_step(scan, SECOND / 2, found);
		assert_true(result != VP_SCAN_GOES_ON || host->wall >= before + SECOND / 2);
	}
	note_use(host);
	vp_kernel_scan_free(scan);
	vp_guest_memory_deinit(&host->memory);
	return result;
}

static void expect_kernel(const struct host *host, const struct vp_guest_view *found)
{
	assert_int_equal(found->image_gpa, host->image);
	assert_int_equal(found->image_va, BUILT_TEXT);
	assert_int_equal(found->root, host->image + AT_TOP_PGT);
	assert_false(host->touched);
}

/* 64 GiB, all of it backed, and the kernel where it is without KASLR: hardly anything is read. */
static void test_usual_place(void **state)
{
	struct host host = new_host(64 * GIB);
	struct vp_guest_view found;

	host.full_to = 70 * GIB;
	put_kernel(&host, 16 * MIB);
	assert_int_equal(search(&host, 0, NULL, &found), VP_SCAN_FOUND);
	expect_kernel(&host, &found);
	assert_int_equal(host.first_read, 16 * MIB);
	assert_true(host.bytes <= 16 * MIB);
	assert_int_equal(host.slept, 0);
}

/* Wherever KASLR puts it, one page of each 2 MiB tells: within seconds, at the pace that holds. */
static void test_moved_place(void **state)
{
	struct host host = new_host(64 * GIB);
	struct vp_guest_view found;

	host.full_to = 70 * GIB;
	put_kernel(&host, 57 * GIB + 6 * MIB);
	assert_int_equal(search(&host, 0, NULL, &found), VP_SCAN_FOUND);
	expect_kernel(&host, &found);
	assert_true(host.bytes <= 32768 * 4 * KIB + 16 * MIB);
	assert_true(host.wall <= 10 * SECOND);
}

/* A pack saves reading the symbol tables: pages, not mebibytes. */
static void test_usual_place_with_pack(void **state)
{
	struct host host = new_host(4 * GIB);
	vp_kernel_packs packs = {0};
	struct vp_guest_view found;
	struct opened opened;

	built_kernel(&guest, BUILT_NEW);
	open_kernel(&opened);
	vp_vec_push(&packs, opened.kernel.pack);
	close_guest(&opened);
	host.full_to = 5 * GIB;
	put_kernel(&host, 16 * MIB);
	assert_int_equal(search(&host, 0, &packs, &found), VP_SCAN_FOUND);
	expect_kernel(&host, &found);
	assert_true(host.bytes <= 2 * VP_GUEST_PAGE);
	vp_vec_deinit(&packs);
}

/* The banner in the usual place may be one that is left over (a weak one, since v6.2): with and
 * without a pack the kernel is found there all the same. */
static void test_usual_place_with_weak_banner(void **state)
{
	for (int with_pack = 0; with_pack < 2; with_pack++) {
		struct host host = new_host(64 * GIB);
		vp_kernel_packs packs = {0};
		struct vp_guest_view found;
		struct opened opened;

		built_kernel_with_banner(&guest, BUILT_NEW, AT_END - 0x200);
		strcpy(guest.image + AT_BANNER, "Linux version 6.1.0-built (weak)\n");
		open_kernel(&opened);
		vp_vec_push(&packs, opened.kernel.pack);
		close_guest(&opened);
		host.full_to = 70 * GIB;
		host.image = 18 * MIB;
		built_move(&guest, host.image);
		assert_int_equal(search(&host, 0, with_pack ? &packs : NULL, &found),
				 VP_SCAN_FOUND);
		expect_kernel(&host, &found);
		assert_true(host.bytes <= (with_pack ? 8 * VP_GUEST_PAGE : 32 * MIB));
		vp_vec_deinit(&packs);
	}
}

/* Where it was the last time is looked at first; if it is not there any more, it is found all the
 * same. */
static void test_remembered(void **state)
{
	const uint64_t place = 40 * GIB + 2 * MIB;
	struct vp_guest_view found;

	struct host host = new_host(64 * GIB);
	host.full_to = 70 * GIB;
	put_kernel(&host, place);
	assert_int_equal(search(&host, place + AT_BANNER, NULL, &found), VP_SCAN_FOUND);
	expect_kernel(&host, &found);
	assert_int_equal(host.first_read, place);
	assert_true(host.bytes <= 16 * MIB);
	assert_int_equal(host.slept, 0);

	struct host moved = new_host(64 * GIB);
	moved.full_to = 70 * GIB;
	put_kernel(&moved, 16 * MIB);
	assert_int_equal(search(&moved, place + AT_BANNER, NULL, &found), VP_SCAN_FOUND);
	expect_kernel(&moved, &found);
	assert_int_equal(moved.first_read, place);
}

/* A kernel whose own page tables lead elsewhere: that of a guest in the guest. */
static void test_decoy(void **state)
{
	struct host host = new_host(2 * GIB);
	struct vp_guest_view found;

	host.full_to = 2 * GIB;
	put_kernel(&host, 512 * MIB);
	host.decoy = 64 * MIB;
	assert_int_equal(search(&host, host.decoy + AT_BANNER, NULL, &found), VP_SCAN_FOUND);
	expect_kernel(&host, &found);
}

static struct vp_kernel_pack pack_of_built(void)
{
	struct opened opened;

	built_kernel(&guest, BUILT_NEW);
	open_kernel(&opened);
	struct vp_kernel_pack pack = opened.kernel.pack;
	close_guest(&opened);
	return pack;
}

static enum vp_scan_result search_until(struct vp_kernel_scan *scan, struct host *host,
					uint64_t until, struct vp_guest_view *found)
{
	enum vp_scan_result result = VP_SCAN_GOES_ON;

	while (result == VP_SCAN_GOES_ON && host->wall < until)
		result = vp_kernel_scan_step(scan, SECOND / 2, found);
	return result;
}

/* A guest that boots has the banner of a known kernel before the rest: its tables are not searched
 * meanwhile, and it is found within seconds of being complete. One that is never complete is
 * searched like any other after half a minute. */
static void test_guest_that_boots(void **state)
{
	for (int completes = 0; completes < 2; completes++) {
		struct host host = new_host(4 * GIB);
		const struct vp_throttle_clock clock = {&host, wall, cpu, sleep_for};
		vp_kernel_packs packs = {0};
		struct vp_guest_view found;
		char tables[VP_GUEST_PAGE];

		vp_vec_push(&packs, pack_of_built());
		put_kernel(&host, 16 * MIB);
		host.full_to = 5 * GIB;
		memcpy(tables, guest.image + AT_TOP_PGT, sizeof(tables));
		memset(guest.image + AT_TOP_PGT, 0, sizeof(tables));
		host.memory.context = &host;
		struct vp_kernel_scan *scan = vp_kernel_scan_new(&(struct vp_scan_setup){
		    .memory = &host.memory, .packs = &packs, .clock = &clock});
		assert_int_equal(vp_kernel_scan_step(scan, 1, &found), VP_SCAN_GOES_ON);
		assert_true(host.bytes > 0 && host.bytes < 64 * KIB);
		if (completes)
			memcpy(guest.image + AT_TOP_PGT, tables, sizeof(tables));
		assert_int_equal(search_until(scan, &host, 25 * SECOND, &found),
				 completes ? VP_SCAN_FOUND : VP_SCAN_GOES_ON);
		if (completes)
			expect_kernel(&host, &found);
		vp_kernel_scan_free(scan);
		vp_guest_memory_deinit(&host.memory);
		vp_vec_deinit(&packs);
	}
}

/* A kernel that only has the release of a known one is found all the same, within a minute. */
static void test_release_of_another_kernel(void **state)
{
	struct host host = new_host(GIB);
	vp_kernel_packs packs = {0};
	struct vp_guest_view found;

	struct vp_kernel_pack pack = pack_of_built();
	put_kernel(&host, 16 * MIB);
	pack.symbol.init_top_pgt.offset += VP_GUEST_PAGE;
	vp_vec_push(&packs, pack);
	host.full_to = GIB;
	assert_int_equal(search(&host, 0, &packs, &found), VP_SCAN_FOUND);
	expect_kernel(&host, &found);
	assert_in_range(host.wall, 0, 60 * SECOND);
	vp_vec_deinit(&packs);
}

/* What looks like symbol tables, such as digits in firmware, with no memory around it: a guest that
 * has just started. Only what is there is looked at. */
static void test_candidate_alone(void **state)
{
	static const char digits[] = "0\0001\0002\0003\0004\0005\0006\0007\0008\0009";
	enum { CHUNK_PAGES = 512 };
	uint64_t asked[2];

	for (int with_digits = 0; with_digits < 2; with_digits++) {
		struct host host = new_host(512 * MIB);
		struct vp_guest_view found;
		built_kernel(&guest, BUILT_NEW);
		memset(guest.low, 0, sizeof(guest.low));
		if (with_digits)
			memcpy(guest.low + 64, digits, sizeof(digits));
		assert_int_equal(search(&host, 0, NULL, &found), VP_SCAN_ENDED);
		assert_false(host.touched);
		asked[with_digits] = host.asked;
	}
	assert_in_range(asked[1] - asked[0], CHUNK_PAGES, 6 * CHUNK_PAGES);
}

/* Without a banner in its usual page, everything is gone through, and it is found by its symbol
 * tables; of memory with holes no page is touched that is not there. */
static void test_everywhere(void **state)
{
	for (int layout = BUILT_OLD; layout <= BUILT_PLACE; layout++) {
		struct host host = new_host(GIB);
		struct vp_guest_view found;
		built_kernel_with_banner(&guest, (enum built_layout)layout, AT_END - 0x200);
		built_move(&guest, 258 * MIB);
		host.image = 258 * MIB;
		host.full_to = GIB;
		host.hole_every = 3;
		assert_int_equal(search(&host, 0, NULL, &found), VP_SCAN_FOUND);
		expect_kernel(&host, &found);
	}
}

/* What is not backed is not touched, wherever it is. */
static void test_sparse(void **state)
{
	struct host host = new_host(64 * GIB);
	struct vp_guest_view found;

	host.full_from = 20 * GIB;
	host.full_to = 20 * GIB + 512 * MIB;
	host.hole_every = 2;
	assert_int_equal(search(&host, 8 * GIB, NULL, &found), VP_SCAN_ENDED);
	assert_false(host.touched);
	assert_true(host.bytes > 0);
}

/* The time of a pCPU and the bytes in a second are bounded, on fast and on slow machines: beyond
 * what may be used at once and one chunk there is never more than that. */
static void test_cost(void **state)
{
	static const uint64_t ps_of_byte[] = {1, 250, 1000, 50000};
	enum { CHUNK = 4 << 20 };

	for (size_t i = 0; i < VP_ARRAY_SIZE(ps_of_byte); i++) {
		struct host host = new_host(GIB);
		struct vp_guest_view found;
		built_kernel(&guest, BUILT_NEW);
		host.full_to = GIB;
		host.ps_of_byte = ps_of_byte[i];
		assert_int_equal(search(&host, 0, NULL, &found), VP_SCAN_ENDED);
		assert_true(host.bytes >= GIB); /* all of it */
		int64_t chunk_cpu = (int64_t)(CHUNK * ps_of_byte[i] / 1000);
		assert_in_range(host.cpu_beyond + (int64_t)(100 * SECOND), 0,
				100 * SECOND + (uint64_t)chunk_cpu);
		assert_in_range(host.bytes_beyond + (int64_t)(100 * GIB), 0, 100 * GIB + CHUNK);
		assert_true(host.slept > 0);
	}
}

/* A guest that claims to have kernels everywhere: looking at them costs no more. */
static void test_cost_of_lies(void **state)
{
	struct host host = new_host(14 * MIB);
	struct vp_guest_view found;
	/* One that is not paid for yet: it reads all lies, some twice. */
	const uint64_t ns_of_byte = 50, one_try = 16ULL * BUILT_IMAGE * ns_of_byte;

	built_kernel(&guest, BUILT_NEW);
	memset(guest.low, 0, sizeof(guest.low)); /* no page tables lead anywhere */
	host.lies = true;
	host.ps_of_byte = 1000 * ns_of_byte;
	assert_int_equal(search(&host, 0, NULL, &found), VP_SCAN_ENDED);
	assert_in_range(host.cpu_beyond + (int64_t)(100 * SECOND), 0, 100 * SECOND + one_try);
	assert_true(host.cpu > 7 * one_try);
	assert_true(host.slept > 10 * host.cpu);
	assert_false(host.touched);
}

/* What was spent on a kernel that was found and was none, before the search goes on, is the
 * search's. */
static void test_cost_of_false_kernel(void **state)
{
	struct host host = new_host(4 * GIB);
	const struct vp_throttle_clock clock = {&host, wall, cpu, sleep_for};
	static const vp_kernel_packs none;
	const struct vp_scan_setup setup = {
	    .memory = &host.memory, .packs = &none, .clock = &clock};
	struct vp_guest_view found;

	host.full_to = 5 * GIB;
	host.memory.context = &host;
	put_kernel(&host, 16 * MIB);
	struct vp_kernel_scan *scan = vp_kernel_scan_new(&setup);
	assert_int_equal(vp_kernel_scan_step(scan, SECOND / 2, &found), VP_SCAN_FOUND);
	host.cpu += SECOND;
	host.wall += SECOND;
	uint64_t bytes = host.bytes, until = host.wall + 40 * SECOND;
	while (host.wall < until)
		assert_int_equal(vp_kernel_scan_step(scan, SECOND / 2, &found), VP_SCAN_GOES_ON);
	assert_int_equal(host.bytes, bytes);
	vp_kernel_scan_free(scan);
	vp_guest_memory_deinit(&host.memory);
}

/* How many pages of this process's memory there are. */
static size_t count_present(int pagemap, const char *at, size_t size)
{
	const struct vp_guest_files files = {.memory = -1, .pagemap = pagemap};
	struct vp_guest_memory memory = {0};
	size_t count = 0;

	vp_guest_memory_by_files(&memory, &files);
	for (size_t i = 0; i < size; i += VP_GUEST_PAGE) {
		unsigned char backed;
		memory.backed(memory.context, (uintptr_t)(at + i), 1, &backed);
		count += backed;
	}
	return count;
}

/* A process's own memory as the guest's, through the files that a VMM has too. */
static void look_into_own(char *at, size_t size, bool with_kernel)
{
	static const vp_kernel_packs none;
	VP_AUTO_CLOSE int memory_fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	VP_AUTO_CLOSE int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	const struct vp_guest_files files = {.memory = memory_fd, .pagemap = pagemap};
	struct host host = {0};
	const struct vp_throttle_clock clock = {&host, wall, cpu, sleep_for};
	struct vp_guest_memory memory = {0};
	const struct vp_scan_setup setup = {.memory = &memory, .packs = &none, .clock = &clock};
	enum vp_scan_result result = VP_SCAN_GOES_ON;
	struct vp_guest_view found;

	assert_true(memory_fd >= 0 && pagemap >= 0);
	vp_guest_memory_by_files(&memory, &files);
	vp_guest_memory_add(&memory, 0, size, (uintptr_t)at);
	put_kernel(&host, 32 * MIB);
	if (with_kernel)
		memcpy(at + 32 * MIB, guest.image, sizeof(guest.image));
	memcpy(at, guest.low, sizeof(guest.low));
	for (size_t i = 64 * MIB; i < 80 * MIB; i += 7 * VP_GUEST_PAGE)
		at[i] = 1;
	size_t before = count_present(pagemap, at, size);
	struct vp_kernel_scan *scan = vp_kernel_scan_new(&setup);
	while (result == VP_SCAN_GOES_ON)
		result = vp_kernel_scan_step(scan, SECOND, &found);
	assert_int_equal(result, with_kernel ? VP_SCAN_FOUND : VP_SCAN_ENDED);
	assert_int_equal(count_present(pagemap, at, size), before);
	assert_true(before > 0 && before < size / VP_GUEST_PAGE / 4);
	vp_kernel_scan_free(scan);
	vp_guest_memory_deinit(&memory);
}

/* Memory of its own, and a file's that is not all there: both are left as they were. */
static void test_own_memory(void **state)
{
	const size_t size = 256 * MIB;

	for (int with_kernel = 0; with_kernel < 2; with_kernel++) {
		VP_AUTO_CLOSE int file = memfd_create("guest", MFD_CLOEXEC);
		struct stat before, after;
		assert_int_equal(ftruncate(file, (off_t)size), 0);
		char *own = mmap(NULL, size, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		char *shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
		assert_true(own != MAP_FAILED && shared != MAP_FAILED);
		madvise(own, size, MADV_NOHUGEPAGE);
		look_into_own(own, size, with_kernel);
		look_into_own(shared, size, with_kernel);
		assert_int_equal(fstat(file, &before), 0);
		look_into_own(shared, size, with_kernel);
		assert_int_equal(fstat(file, &after), 0);
		assert_int_equal(before.st_blocks, after.st_blocks);
		munmap(own, size);
		munmap(shared, size);
	}
}

/* Those that nobody has touched yet. */
static unsigned long free_huge_pages(void)
{
	unsigned long count = 0;
	char line[128];
	FILE *file = fopen("/proc/meminfo", "re");

	assert_non_null(file);
	while (!count && fgets(line, sizeof(line), file))
		sscanf(line, "HugePages_Free: %lu", &count);
	fclose(file);
	return count;
}

/* A VMM's memory of huge pages (hugetlbfs): looking for a kernel takes none. */
static void test_huge_pages(void **state)
{
	const size_t size = 256 * MIB;
	enum { TOUCHED = 16 }; /* at least what look_into_own() writes to, of 2 MiB each */

	if (free_huge_pages() < TOUCHED) {
		print_message("skipped: fewer than 16 huge pages are free (vm.nr_hugepages)\n");
		skip();
	}
	for (int with_kernel = 0; with_kernel < 2; with_kernel++) {
		VP_AUTO_CLOSE int file = memfd_create("guest", MFD_CLOEXEC | MFD_HUGETLB);
		assert_true(file >= 0);
		assert_int_equal(ftruncate(file, (off_t)size), 0);
		char *huge =
		    mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
		assert_true(huge != MAP_FAILED);
		look_into_own(huge, size, with_kernel);
		unsigned long left = free_huge_pages();
		look_into_own(huge, size, with_kernel);
		assert_int_equal(free_huge_pages(), left);
		munmap(huge, size);
	}
}

/* Without knowing what there is, nothing is touched. */
static void test_backing_unknown(void **state)
{
	struct host host = new_host(GIB);
	struct vp_guest_view found;

	host.memory.backed = NULL;
	put_kernel(&host, 16 * MIB);
	assert_int_equal(search(&host, 16 * MIB, NULL, &found), VP_SCAN_ENDED);
	assert_int_equal(host.reads, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_usual_place),
	    cmocka_unit_test(test_moved_place),
	    cmocka_unit_test(test_usual_place_with_pack),
	    cmocka_unit_test(test_usual_place_with_weak_banner),
	    cmocka_unit_test(test_remembered),
	    cmocka_unit_test(test_decoy),
	    cmocka_unit_test(test_guest_that_boots),
	    cmocka_unit_test(test_release_of_another_kernel),
	    cmocka_unit_test(test_candidate_alone),
	    cmocka_unit_test(test_everywhere),
	    cmocka_unit_test(test_sparse),
	    cmocka_unit_test(test_cost),
	    cmocka_unit_test(test_cost_of_lies),
	    cmocka_unit_test(test_cost_of_false_kernel),
	    cmocka_unit_test(test_own_memory),
	    cmocka_unit_test(test_huge_pages),
	    cmocka_unit_test(test_backing_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
