/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The ring of a completion queue, and what of it a process sees.
 *
 * This header and cq_ring.c are pure code: they build in the kernel and in user
 * space, where they run against the provider's consumer.
 */
#ifndef TBV_CQ_RING_H
#define TBV_CQ_RING_H

#ifdef __KERNEL__
#include <linux/types.h>
#include <rdma/ib_user_verbs.h>
#else
#include "tests/ring_shim.h"
#endif
#include "tbv_cq_shm.h"

/**
 * struct tbv_cq_ring - totals; all but @consumer and @shm private to the kernel
 * @shm: what the process may read; NULL if the queue is not published
 * @consumer: where consumers say how far they are; written by the process if
 *	the queue is published
 * @own: stands in for it if it is not
 * @first: where the totals began, and what was put in twice
 * @produced: completions put in
 * @consumed: last value of @consumer that could be
 * @overflows: completions lost
 * @cqe: capacity
 * @mask: number of slots - 1
 */
struct tbv_cq_ring {
	struct tbv_cq_shm *shm;
	struct tbv_cq_consumer *consumer;
	struct tbv_cq_consumer own;
	u64 first;
	u64 produced;
	u64 consumed;
	u64 overflows;
	u32 cqe;
	u32 mask;
};

void tbv_cq_ring_init(struct tbv_cq_ring *ring, u32 cqe, u64 first);
size_t tbv_cq_ring_bytes(const struct tbv_cq_ring *ring);
void tbv_cq_ring_publish(struct tbv_cq_ring *ring, void *shm, void *consumer);
u64 tbv_cq_ring_consumed(struct tbv_cq_ring *ring);
bool tbv_cq_ring_full(struct tbv_cq_ring *ring);
void tbv_cq_ring_push(struct tbv_cq_ring *ring, const struct ib_uverbs_wc *wc);
void tbv_cq_ring_overflow(struct tbv_cq_ring *ring);
bool tbv_cq_ring_take(struct tbv_cq_ring *ring, u64 from, u64 to);
void tbv_cq_ring_die(struct tbv_cq_ring *ring);

#endif /* TBV_CQ_RING_H */
