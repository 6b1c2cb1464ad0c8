/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Test doubles of this module, built with TBV_DOUBLE=1 and chosen by its
 * parameter "double": a module that is older, or that says what is not so.
 */
#ifndef TBV_DOUBLE_H
#define TBV_DOUBLE_H

#include "usb4_rdma_abi.h"

enum tbv_double {
	TBV_DOUBLE_NONE,
	TBV_DOUBLE_OLD,		/* publishes no completion queue */
	TBV_DOUBLE_ABI,		/* the reply tells another layout, … */
	TBV_DOUBLE_CQE,		/* … another capacity, … */
	TBV_DOUBLE_RING_LEN,	/* … another length, … */
	TBV_DOUBLE_RESERVED,	/* … something in a reserved field, … */
	TBV_DOUBLE_RING_OFFSET,	/* … or a place where nothing is */
	TBV_DOUBLE_CONSUMER_OFFSET,
	TBV_DOUBLE_NO_EVENT,	/* it forgets every 100th event */
};

#ifdef TBV_DOUBLE
bool tbv_double_is(enum tbv_double which);
void tbv_double_reply(struct usb4_rdma_create_cq_resp *resp);
bool tbv_double_forgets(void);
#else
static inline bool tbv_double_is(enum tbv_double which)
{
	return false;
}

static inline void tbv_double_reply(struct usb4_rdma_create_cq_resp *resp)
{
}

static inline bool tbv_double_forgets(void)
{
	return false;
}
#endif

#endif /* TBV_DOUBLE_H */
