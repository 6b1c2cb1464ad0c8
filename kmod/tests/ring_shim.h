/* SPDX-License-Identifier: GPL-2.0 */
/* What cq_ring.c takes from the kernel, for user space. */
#ifndef TBV_RING_SHIM_H
#define TBV_RING_SHIM_H

#include <linux/types.h>
#include <rdma/ib_user_verbs.h>
#include <stdbool.h>
#include <stddef.h>

typedef __u32 u32;
typedef __u64 u64;

/* The kernel's barriers, in the words of C11; who uses them says why. */
#define smp_load_acquire(p)	__atomic_load_n(p, __ATOMIC_ACQUIRE)
/* As above. */
#define smp_store_release(p, v)	__atomic_store_n(p, v, __ATOMIC_RELEASE)
#define WRITE_ONCE(x, v)	__atomic_store_n(&(x), v, __ATOMIC_RELAXED)

static inline u64 cmpxchg(u64 *p, u64 old, u64 new)
{
	__atomic_compare_exchange_n(p, &old, new, false, __ATOMIC_ACQ_REL,
				    __ATOMIC_ACQUIRE);
	return old;
}

static inline u32 roundup_pow_of_two(u32 n)
{
	return n <= 1 ? 1 : 1u << (32 - __builtin_clz(n - 1));
}

#endif /* TBV_RING_SHIM_H */
