/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Prints what the C side of the contract looks like, for layout.rs. */
#include "usb4_rdma_abi.h"

#include <stddef.h>
#include <stdio.h>

#define SIZE(type)		printf(#type " %zu\n", sizeof(struct type))
#define FIELD(type, field)	printf(#type "." #field " %zu\n", offsetof(struct type, field))
#define NUMBER(name)		printf(#name " %lu\n", (unsigned long)(name))
#define TEXT(name)		printf(#name " %s\n", name)

int main(void)
{
	SIZE(usb4_rdma_alloc_ucontext_resp);
	FIELD(usb4_rdma_alloc_ucontext_resp, uverbs_abi_version);
	FIELD(usb4_rdma_alloc_ucontext_resp, device_index);

	SIZE(usb4_rdma_create_cq_resp);
	FIELD(usb4_rdma_create_cq_resp, ring_offset);
	FIELD(usb4_rdma_create_cq_resp, cqe);
	FIELD(usb4_rdma_create_cq_resp, shm_abi);
	FIELD(usb4_rdma_create_cq_resp, ring_len);
	FIELD(usb4_rdma_create_cq_resp, reserved);
	FIELD(usb4_rdma_create_cq_resp, consumer_offset);

	NUMBER(USB4_RDMA_UVERBS_ABI_VERSION);
	TEXT(USB4_RDMA_DRIVER_NAME);
	TEXT(USB4_RDMA_DEVICE_NAME_FORMAT);
	NUMBER(USB4_RDMA_VENDOR_ID);
	NUMBER(USB4_RDMA_VENDOR_PART_ID);
	NUMBER(USB4_RDMA_GUID_PREFIX);
	NUMBER(USB4_RDMA_GUID_PREFIX_SHIFT);
	return 0;
}
