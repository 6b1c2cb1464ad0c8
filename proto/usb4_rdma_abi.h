/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR BSD-2-Clause */
/*
 * The contract between thunderbolt_ibverbs.ko and its libibverbs provider:
 * names, numbers, and what the driver appends to the replies of the standard
 * uverbs commands.  Kernel and user space both include this file; the Rust
 * crate tbv-proto mirrors it, and its tests hold the two against each other.
 *
 * Replies grow at their end only.  A caller offers the room it knows; the
 * kernel fills no more than that, and what it does not fill the caller has
 * zeroed before.  So zero in an appended field means "not offered".
 */
#ifndef USB4_RDMA_ABI_H
#define USB4_RDMA_ABI_H

#include <linux/types.h>
#ifdef __KERNEL__
#include <linux/build_bug.h>
#else
#include <assert.h>
#endif

/* ib_device_ops.uverbs_abi_ver; changes only if old providers must not load. */
#define USB4_RDMA_UVERBS_ABI_VERSION	1

/* Provider name: libusb4_rdma-rdmav<PABI>.so, usb4_rdma.driver. */
#define USB4_RDMA_DRIVER_NAME		"usb4_rdma"

/* Name a device is born with; udev may rename it. */
#define USB4_RDMA_DEVICE_NAME_FORMAT	"usb4_rdma%d"

#define USB4_RDMA_VENDOR_ID		0x1d6b
#define USB4_RDMA_VENDOR_PART_ID	0x5442

/*
 * First four bytes of every node GUID, as they are on the wire and in sysfs:
 * 02:00:54:42.  The four bytes after them differ for every host and port.
 * Providers recognise a device by this prefix, never by its name.
 */
#define USB4_RDMA_GUID_PREFIX		0x02005442U
#define USB4_RDMA_GUID_PREFIX_SHIFT	32

/**
 * struct usb4_rdma_alloc_ucontext_resp - appended to the GET_CONTEXT reply
 * @uverbs_abi_version: %USB4_RDMA_UVERBS_ABI_VERSION of the loaded module
 * @device_index: the device number that tracepoints and debugfs use; survives
 *	a rename by udev
 */
struct usb4_rdma_alloc_ucontext_resp {
	__u32 uverbs_abi_version;
	__u32 device_index;
};

/**
 * struct usb4_rdma_create_cq_resp - appended to the CREATE_CQ reply
 * @ring_offset: mmap offset of the completion ring, to be mapped read-only
 * @cqe: number of entries in the ring; may exceed what was asked for
 * @shm_abi: version of the ring's layout
 * @ring_len: exact length of the ring mapping in bytes
 * @reserved: zero
 * @consumer_offset: mmap offset of the consumer page, to be mapped writable,
 *	one page long
 *
 * All zero if the kernel does not offer the CQ to user space: poll by system
 * call then.
 */
struct usb4_rdma_create_cq_resp {
	__aligned_u64 ring_offset;
	__u32 cqe;
	__u32 shm_abi;
	__u32 ring_len;
	__u32 reserved;
	__aligned_u64 consumer_offset;
};

static_assert(sizeof(struct usb4_rdma_alloc_ucontext_resp) == 8,
	      "alloc_ucontext reply has another size than the contract");
static_assert(__builtin_offsetof(struct usb4_rdma_alloc_ucontext_resp,
				 device_index) == 4,
	      "device_index has moved");
static_assert(sizeof(struct usb4_rdma_create_cq_resp) == 32,
	      "create_cq reply has another size than the contract");
static_assert(__builtin_offsetof(struct usb4_rdma_create_cq_resp, cqe) == 8,
	      "cqe has moved");
static_assert(__builtin_offsetof(struct usb4_rdma_create_cq_resp,
				 shm_abi) == 12,
	      "shm_abi has moved");
static_assert(__builtin_offsetof(struct usb4_rdma_create_cq_resp,
				 ring_len) == 16,
	      "ring_len has moved");
static_assert(__builtin_offsetof(struct usb4_rdma_create_cq_resp,
				 consumer_offset) == 24,
	      "consumer_offset has moved");

#endif /* USB4_RDMA_ABI_H */
