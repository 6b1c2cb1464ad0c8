// SPDX-License-Identifier: GPL-2.0
/* What the device and its one port say about themselves. */
#include "tbv.h"

int tbv_query_device(struct ib_device *ibdev, struct ib_device_attr *attr,
		     struct ib_udata *udata)
{
	*attr = (struct ib_device_attr) {
		.sys_image_guid = ibdev->node_guid,
		.vendor_id = USB4_RDMA_VENDOR_ID,
		.vendor_part_id = USB4_RDMA_VENDOR_PART_ID,
		.hw_ver = 1,
		.max_mr_size = TBV_MAX_MR_SIZE,
		.page_size_cap = PAGE_SIZE,
		.max_pd = TBV_MAX_PD,
		.max_mr = TBV_MAX_MR,
		.max_cq = TBV_MAX_CQ,
		.max_cqe = TBV_MAX_CQE,
		.max_qp = TBV_MAX_QP,
		.max_qp_wr = TBV_MAX_QP_WR,
		.max_send_sge = TBV_MAX_SGE,
		.max_recv_sge = TBV_MAX_SGE,
		.max_sge_rd = TBV_MAX_SGE,
		.max_qp_rd_atom = TBV_MAX_RD_ATOMIC,
		.max_qp_init_rd_atom = TBV_MAX_RD_ATOMIC,
		.max_res_rd_atom = TBV_MAX_RD_ATOMIC * TBV_MAX_QP,
		.atomic_cap = IB_ATOMIC_NONE,
		.max_pkeys = 1,
	};
	return 0;
}

int tbv_query_port(struct ib_device *ibdev, u32 port,
		   struct ib_port_attr *attr)
{
	struct tbv_dev *dev = to_tbv_dev(ibdev);
	bool up = READ_ONCE(dev->link_up);

	attr->state = up ? IB_PORT_ACTIVE : IB_PORT_DOWN;
	attr->phys_state = up ? IB_PORT_PHYS_STATE_LINK_UP :
				IB_PORT_PHYS_STATE_POLLING;
	attr->max_mtu = IB_MTU_4096;
	attr->active_mtu = IB_MTU_4096;
	attr->gid_tbl_len = 1;
	attr->pkey_tbl_len = 1;
	attr->max_msg_sz = TBV_WIRE_MAX_MSG;
	attr->lid = dev->lid;
	/* There is no subnet manager; the port stands in for it. */
	attr->sm_lid = dev->lid;
	attr->max_vl_num = 1;
	/* 40 Gb/s, what a USB4 cable of two lanes carries. */
	attr->active_width = IB_WIDTH_4X;
	attr->active_speed = IB_SPEED_QDR;
	return 0;
}

int tbv_get_port_immutable(struct ib_device *ibdev, u32 port,
			   struct ib_port_immutable *immutable)
{
	immutable->pkey_tbl_len = 1;
	immutable->gid_tbl_len = 1;
	/* InfiniBand without MADs: there is no QP1 to send them. */
	immutable->core_cap_flags = RDMA_CORE_CAP_PROT_IB;
	return 0;
}

int tbv_query_gid(struct ib_device *ibdev, u32 port, int index,
		  union ib_gid *gid)
{
	if (index)
		return -EINVAL;
	gid->global.subnet_prefix = cpu_to_be64(0xfe80000000000000ULL);
	gid->global.interface_id = ibdev->node_guid;
	return 0;
}

int tbv_query_pkey(struct ib_device *ibdev, u32 port, u16 index, u16 *pkey)
{
	if (index)
		return -EINVAL;
	*pkey = 0xffff;
	return 0;
}

enum rdma_link_layer tbv_get_link_layer(struct ib_device *ibdev, u32 port)
{
	return IB_LINK_LAYER_INFINIBAND;
}

void tbv_get_dev_fw_str(struct ib_device *ibdev, char *str)
{
	snprintf(str, IB_FW_VERSION_NAME_MAX, "%u", TBV_WIRE_VERSION);
}
