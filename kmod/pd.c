// SPDX-License-Identifier: GPL-2.0
/* User contexts and protection domains. */
#include "tbv.h"

int tbv_alloc_ucontext(struct ib_ucontext *ctx, struct ib_udata *udata)
{
	struct tbv_dev *dev = to_tbv_dev(ctx->device);
	struct usb4_rdma_alloc_ucontext_resp resp = {
		.uverbs_abi_version = USB4_RDMA_UVERBS_ABI_VERSION,
		.device_index = dev->index,
	};
	int err;

	/* As much of the reply as the caller knows of. */
	err = ib_copy_to_udata(udata, &resp,
			       min(sizeof(resp), udata->outlen));
	if (err)
		return err;
	atomic_inc(&dev->n_contexts);
	return 0;
}

void tbv_dealloc_ucontext(struct ib_ucontext *ctx)
{
	atomic_dec(&to_tbv_dev(ctx->device)->n_contexts);
}

/*
 * Its presence allows unplug and unload under open contexts. The core destroys
 * the objects; mapped memory stays with who maps it.
 */
void tbv_disassociate_ucontext(struct ib_ucontext *ctx)
{
}

int tbv_alloc_pd(struct ib_pd *pd, struct ib_udata *udata)
{
	return tbv_object_get(&to_tbv_dev(pd->device)->n_pds, TBV_MAX_PD);
}

int tbv_dealloc_pd(struct ib_pd *pd, struct ib_udata *udata)
{
	atomic_dec(&to_tbv_dev(pd->device)->n_pds);
	return 0;
}
