/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR BSD-2-Clause */
/*
 * A completion queue published to user space: two mappings of memory that
 * kernel and process share.
 *
 * The ring mapping is read-only to the process: struct tbv_cq_shm, and right
 * behind it the entries.  The consumer mapping is one page, writable by the
 * process, that begins with struct tbv_cq_consumer.
 *
 * produced and consumed are totals that only grow (modulo 2^64); their
 * difference is the number of completions in the queue, at most cqe.  There
 * are as many slots as the next power of two of cqe; completion number n is in
 * slot n modulo that.
 *
 * The kernel writes an entry and then produced, with release semantics.  A
 * consumer reads consumed, reads produced with acquire semantics, copies
 * entries, and then moves consumed forward by compare-and-swap with release
 * semantics.  If the swap fails somebody else took them: the copies are void.
 *
 * The kernel is a consumer, too: it takes completions for who polls by system
 * call, and takes out and puts in again what is behind that of a queue pair
 * which goes.  It trusts nothing in the consumer page: a value of consumed
 * that cannot be is as if it had not been written.
 */
#ifndef TBV_CQ_SHM_H
#define TBV_CQ_SHM_H

#include <linux/types.h>
#ifdef __KERNEL__
#include <linux/build_bug.h>
#else
#include <assert.h>
#endif

/* Version of this layout: usb4_rdma_create_cq_resp.shm_abi. */
#define TBV_CQ_SHM_ABI		1

/* An entry is a struct ib_uverbs_wc of <rdma/ib_user_verbs.h>. */
#define TBV_CQ_SHM_ENTRY_SIZE	48

/**
 * struct tbv_cq_shm - head of the ring mapping
 * @abi: %TBV_CQ_SHM_ABI
 * @cqe: capacity
 * @entry_size: %TBV_CQ_SHM_ENTRY_SIZE
 * @device_index: the device number that tracepoints use
 * @cqn: the number of the queue that tracepoints use; zero in the ring of an
 *	older kernel module, which says neither
 * @reserved: zero
 * @produced: how far the kernel has put in completions
 * @ovf_seq: completions ever lost because the queue was full; a consumer that
 *	finds it changed has lost some
 * @dead: not zero once nothing will ever be put in again: the queue is
 *	destroyed or the device is gone
 * @reserved_line: zero
 */
struct tbv_cq_shm {
	__u32 abi;
	__u32 cqe;
	__u32 entry_size;
	__u32 device_index;
	__u32 cqn;
	__u32 reserved[11];
	__aligned_u64 produced;
	__aligned_u64 ovf_seq;
	__u32 dead;
	__u32 reserved_line[11];
};

/**
 * struct tbv_cq_consumer - head of the consumer page
 * @consumed: completions ever taken out
 */
struct tbv_cq_consumer {
	__aligned_u64 consumed;
};

static_assert(sizeof(struct tbv_cq_shm) == 128,
	      "the ring's head has another size than the contract");
static_assert(__builtin_offsetof(struct tbv_cq_shm, device_index) == 12,
	      "device_index has moved");
static_assert(__builtin_offsetof(struct tbv_cq_shm, cqn) == 16,
	      "cqn has moved");
static_assert(__builtin_offsetof(struct tbv_cq_shm, produced) == 64,
	      "produced has moved");
static_assert(__builtin_offsetof(struct tbv_cq_shm, ovf_seq) == 72,
	      "ovf_seq has moved");
static_assert(__builtin_offsetof(struct tbv_cq_shm, dead) == 80,
	      "dead has moved");

#endif /* TBV_CQ_SHM_H */
