// SPDX-License-Identifier: GPL-2.0
/*
 * The ring of a completion queue. Producers are serialised by the caller;
 * consumers are the caller, too, and every thread of a process that has the
 * ring mapped.
 */
#ifdef __KERNEL__
#include <asm/barrier.h>
#include <linux/atomic.h>
#include <linux/build_bug.h>
#include <linux/log2.h>
#endif
#include "cq_ring.h"

static_assert(sizeof(struct ib_uverbs_wc) == TBV_CQ_SHM_ENTRY_SIZE,
	      "a published completion has another size than the contract");

static struct ib_uverbs_wc *slot(struct tbv_cq_ring *ring, u64 number)
{
	struct ib_uverbs_wc *entries = (void *)(ring->shm + 1);

	return &entries[number & ring->mask];
}

void tbv_cq_ring_init(struct tbv_cq_ring *ring, u32 cqe, u64 first)
{
	ring->shm = NULL;
	ring->consumer = &ring->own;
	ring->own.consumed = first;
	ring->first = first;
	ring->produced = first;
	ring->consumed = first;
	ring->overflows = 0;
	ring->cqe = cqe;
	ring->mask = roundup_pow_of_two(cqe) - 1;
}

/* Of the memory that tbv_cq_ring_publish() wants. */
size_t tbv_cq_ring_bytes(const struct tbv_cq_ring *ring)
{
	return sizeof(*ring->shm) +
	       ((size_t)ring->mask + 1) * TBV_CQ_SHM_ENTRY_SIZE;
}

/* Before anything is put in; both are zeroed. */
void tbv_cq_ring_publish(struct tbv_cq_ring *ring, void *shm, void *consumer)
{
	ring->shm = shm;
	ring->consumer = consumer;
	ring->consumer->consumed = ring->first;
	ring->shm->abi = TBV_CQ_SHM_ABI;
	ring->shm->cqe = ring->cqe;
	ring->shm->entry_size = TBV_CQ_SHM_ENTRY_SIZE;
	ring->shm->produced = ring->first;
}

/* How far consumers are. The page may hold anything: what cannot be is not. */
u64 tbv_cq_ring_consumed(struct tbv_cq_ring *ring)
{
	u64 told;

	/* Pairs with a consumer's swap: what it copied is copied. */
	told = smp_load_acquire(&ring->consumer->consumed);

	if (told - ring->consumed <= ring->produced - ring->consumed)
		ring->consumed = told;
	return ring->consumed;
}

bool tbv_cq_ring_full(struct tbv_cq_ring *ring)
{
	return ring->produced - tbv_cq_ring_consumed(ring) >= ring->cqe;
}

/* The ring is not full. A consumer that is late may be reading the slot: it
 * will find that it was, and drop what it read.
 */
void tbv_cq_ring_push(struct tbv_cq_ring *ring, const struct ib_uverbs_wc *wc)
{
	const u64 *from = (const u64 *)wc;
	unsigned int i;
	u64 *to;

	if (ring->shm) {
		to = (u64 *)slot(ring, ring->produced);
		for (i = 0; i < sizeof(*wc) / sizeof(*to); i++)
			WRITE_ONCE(to[i], from[i]);
		/* Pairs with a consumer's read: the entry is there. */
		smp_store_release(&ring->shm->produced, ring->produced + 1);
	}
	ring->produced++;
}

void tbv_cq_ring_overflow(struct tbv_cq_ring *ring)
{
	ring->overflows++;
	if (!ring->shm)
		return;
	/* What was put in before the loss is seen before it. */
	smp_store_release(&ring->shm->ovf_seq, ring->overflows);
}

/**
 * tbv_cq_ring_take - move on, unless another consumer was faster
 * @ring: the ring
 * @from: what tbv_cq_ring_consumed() said
 * @to: not past produced
 *
 * A value that cannot be is put right: nobody has taken anything by it.
 *
 * Return: whether completions @from … @to - 1 are the caller's now.
 */
bool tbv_cq_ring_take(struct tbv_cq_ring *ring, u64 from, u64 to)
{
	u64 found = cmpxchg(&ring->consumer->consumed, from, to);

	if (found - from > ring->produced - from) {
		if (cmpxchg(&ring->consumer->consumed, found, to) != found)
			return false;
	} else if (found != from) {
		return false;
	}
	ring->consumed = to;
	return true;
}

/* Nothing will be put in any more. */
void tbv_cq_ring_die(struct tbv_cq_ring *ring)
{
	if (!ring->shm)
		return;
	/* What was put in before the end is seen before it. */
	smp_store_release(&ring->shm->dead, 1);
}
