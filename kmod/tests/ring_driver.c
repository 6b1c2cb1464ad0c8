// SPDX-License-Identifier: GPL-2.0
/*
 * The kernel's half of a published completion queue for a test in user space:
 * cq_ring.c over memory that is mapped as the kernel maps it. The ring has two
 * mappings, of which the consumer's is read-only. It ends where a page ends, no
 * page follows, and a pattern lies before it.
 *
 * The caller serialises all calls on one ring, as the queue's lock does.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../cq_ring.h"

#define PAGE	4096ul
#define PATTERN	0x5a

struct ring_driver {
	struct tbv_cq_ring ring;
	size_t bytes;
	/* Of the pattern. */
	size_t before;
	/* As the kernel sees it, as the process does, and the consumer page. */
	unsigned char *kernel;
	unsigned char *process;
	unsigned char *page;
};

/* With a page before and behind that nobody can touch. */
static void *map(size_t bytes, int prot, int fd)
{
	unsigned char *all = mmap(NULL, bytes + 2 * PAGE, PROT_NONE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (all == MAP_FAILED ||
	    mmap(all + PAGE, bytes, prot, MAP_SHARED | MAP_FIXED |
		 (fd < 0 ? MAP_ANONYMOUS : 0), fd, 0) == MAP_FAILED)
		abort();
	return all + PAGE;
}

void *ring_new(u32 cqe, u64 first)
{
	struct ring_driver *driver = calloc(1, sizeof(*driver));
	int fd = memfd_create("ring", MFD_CLOEXEC);
	size_t size;

	if (!driver || fd < 0)
		abort();
	tbv_cq_ring_init(&driver->ring, cqe, first);
	size = tbv_cq_ring_bytes(&driver->ring);
	driver->bytes = (size + PAGE - 1) / PAGE * PAGE;
	driver->before = driver->bytes - size;
	if (ftruncate(fd, driver->bytes))
		abort();
	driver->kernel = map(driver->bytes, PROT_READ | PROT_WRITE, fd);
	driver->process = map(driver->bytes, PROT_READ, fd);
	driver->page = map(PAGE, PROT_READ | PROT_WRITE, -1);
	close(fd);
	memset(driver->kernel, PATTERN, driver->before);
	tbv_cq_ring_publish(&driver->ring, driver->kernel + driver->before,
			    driver->page);
	return driver;
}

void *ring_shm(struct ring_driver *driver)
{
	return driver->process + driver->before;
}

void *ring_consumer(struct ring_driver *driver)
{
	return driver->page;
}

u64 ring_produced(struct ring_driver *driver)
{
	return driver->ring.produced;
}

u64 ring_consumed(struct ring_driver *driver)
{
	return tbv_cq_ring_consumed(&driver->ring);
}

/* Whether there was room. */
bool ring_push(struct ring_driver *driver, const struct ib_uverbs_wc *wc)
{
	if (tbv_cq_ring_full(&driver->ring))
		return false;
	tbv_cq_ring_push(&driver->ring, wc);
	return true;
}

void ring_overflow(struct ring_driver *driver)
{
	tbv_cq_ring_overflow(&driver->ring);
}

bool ring_take(struct ring_driver *driver, u64 from, u64 to)
{
	return tbv_cq_ring_take(&driver->ring, from, to);
}

void ring_die(struct ring_driver *driver)
{
	tbv_cq_ring_die(&driver->ring);
}

/* Whether nothing was written before the ring, nor behind the consumer word. */
bool ring_is_whole(struct ring_driver *driver)
{
	size_t i;

	for (i = 0; i < driver->before; i++)
		if (driver->kernel[i] != PATTERN)
			return false;
	for (i = sizeof(struct tbv_cq_consumer); i < PAGE; i++)
		if (driver->page[i])
			return false;
	return true;
}
