// SPDX-License-Identifier: GPL-2.0
/* An ib_device: what it offers, its birth and its end. */
#include <linux/jhash.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/utsname.h>

#include "tbv.h"
#include "trace.h"

static const struct ib_device_ops tbv_device_ops = {
	.owner = THIS_MODULE,
	.driver_id = RDMA_DRIVER_UNKNOWN,
	.uverbs_abi_ver = USB4_RDMA_UVERBS_ABI_VERSION,
	.uverbs_no_driver_id_binding = 1,

	.query_device = tbv_query_device,
	.query_port = tbv_query_port,
	.query_gid = tbv_query_gid,
	.query_pkey = tbv_query_pkey,
	.get_port_immutable = tbv_get_port_immutable,
	.get_link_layer = tbv_get_link_layer,
	.get_dev_fw_str = tbv_get_dev_fw_str,
	.alloc_hw_port_stats = tbv_alloc_hw_port_stats,
	.get_hw_stats = tbv_get_hw_stats,

	.alloc_ucontext = tbv_alloc_ucontext,
	.dealloc_ucontext = tbv_dealloc_ucontext,
	.disassociate_ucontext = tbv_disassociate_ucontext,
	.alloc_pd = tbv_alloc_pd,
	.dealloc_pd = tbv_dealloc_pd,
	.reg_user_mr = tbv_reg_user_mr,
	.dereg_mr = tbv_dereg_mr,

	.mmap = tbv_mmap,
	.mmap_free = tbv_mmap_free,

	.create_cq = tbv_create_cq,
	.destroy_cq = tbv_destroy_cq,
	.poll_cq = tbv_poll_cq,
	.req_notify_cq = tbv_req_notify_cq,
	.fill_res_cq_entry = tbv_fill_res_cq_entry,

	.create_qp = tbv_create_qp,
	.modify_qp = tbv_modify_qp,
	.query_qp = tbv_query_qp,
	.destroy_qp = tbv_destroy_qp,
	.post_send = tbv_post_send,
	.post_recv = tbv_post_recv,

	INIT_RDMA_OBJ_SIZE(ib_ucontext, tbv_ucontext, base),
	INIT_RDMA_OBJ_SIZE(ib_pd, tbv_pd, base),
	INIT_RDMA_OBJ_SIZE(ib_cq, tbv_cq, base),
	INIT_RDMA_OBJ_SIZE(ib_qp, tbv_qp, base),
};

/* Unique to the host by its name, and to the device by its index. */
static __be64 make_guid(u32 index)
{
	const char *name = init_utsname()->nodename;
	u32 host = jhash(name, strlen(name), USB4_RDMA_GUID_PREFIX);
	u64 guid = USB4_RDMA_GUID_PREFIX;

	guid <<= USB4_RDMA_GUID_PREFIX_SHIFT;
	return cpu_to_be64(guid | (host & ~0xffu) | (index & 0xff));
}

/**
 * tbv_dev_alloc - a device that is not registered yet
 * @index: its number in names, tracepoints and debugfs
 * @lid: its own LID
 * @peer_lid: the LID at the other end of the cable
 *
 * Return: the device or NULL.
 */
struct tbv_dev *tbv_dev_alloc(u32 index, u16 lid, u16 peer_lid)
{
	struct tbv_dev *dev = ib_alloc_device(tbv_dev, ibdev);
	struct ib_device *ibdev;

	if (!dev)
		return NULL;
	ibdev = &dev->ibdev;
	dev->counters = alloc_percpu(struct tbv_counters);
	if (!dev->counters) {
		ib_dealloc_device(ibdev);
		return NULL;
	}

	dev->index = index;
	dev->lid = lid;
	dev->peer_lid = peer_lid;
	xa_init_flags(&dev->qps, XA_FLAGS_ALLOC | XA_FLAGS_LOCK_BH);
	xa_init_flags(&dev->mrs, XA_FLAGS_LOCK_BH);
	spin_lock_init(&dev->stub_lock);
	INIT_LIST_HEAD(&dev->stubs);
	/* A reloaded module must not meet frames for its former QPs. */
	dev->next_qpn = get_random_u32_inclusive(TBV_QPN_MIN, TBV_QPN_MAX);

	ibdev->node_type = RDMA_NODE_IB_CA;
	ibdev->phys_port_cnt = 1;
	ibdev->num_comp_vectors = num_possible_cpus();
	ibdev->node_guid = make_guid(index);
	strscpy(ibdev->node_desc, "tbv", sizeof(ibdev->node_desc));
	ibdev->uverbs_cmd_mask |= BIT_ULL(IB_USER_VERBS_CMD_POST_SEND) |
				  BIT_ULL(IB_USER_VERBS_CMD_POST_RECV) |
				  BIT_ULL(IB_USER_VERBS_CMD_POLL_CQ) |
				  BIT_ULL(IB_USER_VERBS_CMD_REQ_NOTIFY_CQ);
	ib_set_device_ops(ibdev, &tbv_device_ops);
	return dev;
}

static void free_stubs(struct tbv_dev *dev)
{
	struct tbv_qp_stub *stub, *next;

	list_for_each_entry_safe(stub, next, &dev->stubs, node)
		kfree(stub);
}

/* The paths are stopped and nothing is registered. */
void tbv_dev_free(struct tbv_dev *dev)
{
	free_stubs(dev);
	xa_destroy(&dev->qps);
	xa_destroy(&dev->mrs);
	free_percpu(dev->counters);
	ib_dealloc_device(&dev->ibdev);
}

/* The link is up. */
int tbv_dev_register(struct tbv_dev *dev)
{
	int err;

	dev->link_up = true;
	/* No DMA device: memory regions are copied by the CPU. */
	err = ib_register_device(&dev->ibdev, USB4_RDMA_DEVICE_NAME_FORMAT,
				 NULL);
	if (!err)
		tbv_dev_set_link(dev, true);
	return err;
}

/*
 * What is posted ends now: who has completion queues mapped will find it there
 * after the device is gone. No QP leaves the error state any more.
 */
static void flush_qps(struct tbv_dev *dev)
{
	unsigned long qpn = 0;
	struct tbv_qp *qp;

	WRITE_ONCE(dev->leaving, true);
	for (;;) {
		xa_lock_bh(&dev->qps);
		qp = xa_find(&dev->qps, &qpn, ULONG_MAX, XA_PRESENT);
		if (qp)
			refcount_inc(&qp->refs);
		xa_unlock_bh(&dev->qps);
		if (!qp)
			return;
		spin_lock_bh(&qp->lock);
		tbv_qp_error(qp);
		spin_unlock_bh(&qp->lock);
		tbv_qp_put(qp);
		qpn++;
	}
}

void tbv_dev_unregister(struct tbv_dev *dev)
{
	flush_qps(dev);
	ib_unregister_device(&dev->ibdev);
}

/* Only while registered: clients get to know. */
void tbv_dev_set_link(struct tbv_dev *dev, bool up)
{
	struct ib_event event = {
		.device = &dev->ibdev,
		.event = up ? IB_EVENT_PORT_ACTIVE : IB_EVENT_PORT_ERR,
		.element.port_num = 1,
	};

	WRITE_ONCE(dev->link_up, up);
	trace_link_state(dev->index, TBV_PATH_CABLE, up);
	ib_dispatch_event(&event);
}
