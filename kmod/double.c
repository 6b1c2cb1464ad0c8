// SPDX-License-Identifier: GPL-2.0
/* Test doubles; no part of the module that is installed. */
#include <linux/module.h>

#include "double.h"

static unsigned int which_double;
module_param_named(double, which_double, uint, 0644);
MODULE_PARM_DESC(double, "which test double to be, enum tbv_double (0)");

bool tbv_double_is(enum tbv_double which)
{
	return READ_ONCE(which_double) == which;
}

void tbv_double_reply(struct usb4_rdma_create_cq_resp *resp)
{
	switch (READ_ONCE(which_double)) {
	case TBV_DOUBLE_ABI:
		resp->shm_abi++;
		break;
	case TBV_DOUBLE_CQE:
		resp->cqe *= 4;
		break;
	case TBV_DOUBLE_RING_LEN:
		resp->ring_len += PAGE_SIZE;
		break;
	case TBV_DOUBLE_RESERVED:
		resp->reserved = 1;
		break;
	case TBV_DOUBLE_RING_OFFSET:
		resp->ring_offset += PAGE_SIZE << 20;
		break;
	case TBV_DOUBLE_CONSUMER_OFFSET:
		resp->consumer_offset += PAGE_SIZE << 20;
		break;
	}
}

bool tbv_double_forgets(void)
{
	static atomic_t events;

	return tbv_double_is(TBV_DOUBLE_NO_EVENT) &&
	       atomic_inc_return(&events) % 100 == 0;
}
