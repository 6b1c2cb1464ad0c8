// SPDX-License-Identifier: GPL-2.0
/* QP attributes: judged as a whole before any of them is taken. */
#include "tbv.h"

/* Which path leads to a LID. */
static struct tbv_path *find_path(struct tbv_dev *dev,
				  const struct rdma_ah_attr *ah)
{
	u32 dlid = rdma_ah_get_dlid(ah);

	if (dlid == dev->lid)
		return &dev->path[TBV_PATH_SELF];
	if (dlid == dev->peer_lid)
		return &dev->path[TBV_PATH_CABLE];
	return NULL;
}

static int check_transition(struct tbv_qp *qp, const struct ib_qp_attr *attr,
			    int mask)
{
	enum ib_qp_state next = mask & IB_QP_STATE ? attr->qp_state : qp->state;

	if (mask & IB_QP_CUR_STATE && attr->cur_qp_state != qp->state)
		return -EINVAL;
	if (!ib_modify_qp_is_ok(qp->state, next, IB_QPT_RC, mask))
		return -EINVAL;
	/* Pausing the send queue and alternate paths are not offered. */
	if (next == IB_QPS_SQD || next == IB_QPS_SQE ||
	    mask & (IB_QP_ALT_PATH | IB_QP_RATE_LIMIT))
		return -EOPNOTSUPP;
	return 0;
}

static int check_values(struct tbv_qp *qp, const struct ib_qp_attr *attr,
			int mask)
{
	if (mask & IB_QP_PORT && attr->port_num != 1)
		return -EINVAL;
	if (mask & IB_QP_PKEY_INDEX && attr->pkey_index)
		return -EINVAL;
	if (mask & IB_QP_AV && !find_path(qp->dev, &attr->ah_attr))
		return -EINVAL;
	if (mask & IB_QP_PATH_MTU && (attr->path_mtu < IB_MTU_256 ||
				      attr->path_mtu > IB_MTU_4096))
		return -EINVAL;
	if (mask & IB_QP_TIMEOUT && attr->timeout > 31)
		return -EINVAL;
	if (mask & IB_QP_RETRY_CNT && attr->retry_cnt > 7)
		return -EINVAL;
	if (mask & IB_QP_RNR_RETRY && attr->rnr_retry > 7)
		return -EINVAL;
	if (mask & IB_QP_MIN_RNR_TIMER && attr->min_rnr_timer > 31)
		return -EINVAL;
	if (mask & IB_QP_DEST_QPN && attr->dest_qp_num > TBV_WIRE_24BIT)
		return -EINVAL;
	if (mask & IB_QP_MAX_QP_RD_ATOMIC &&
	    attr->max_rd_atomic > TBV_MAX_RD_ATOMIC)
		return -EINVAL;
	if (mask & IB_QP_MAX_DEST_RD_ATOMIC &&
	    attr->max_dest_rd_atomic > TBV_MAX_RD_ATOMIC)
		return -EINVAL;
	if (mask & IB_QP_PATH_MIG_STATE &&
	    attr->path_mig_state != IB_MIG_MIGRATED)
		return -EOPNOTSUPP;
	return 0;
}

static void take_psns(struct tbv_qp *qp, const struct ib_qp_attr *attr,
		      int mask)
{
	struct tbv_sq *sq = &qp->sq;

	if (mask & IB_QP_SQ_PSN) {
		sq->post_psn = attr->sq_psn & TBV_WIRE_24BIT;
		sq->next_psn = sq->post_psn;
		sq->max_psn = sq->post_psn;
		sq->una_psn = sq->post_psn;
		sq->nak_psn = TBV_PSN_NONE;
		qp->attr.sq_psn = sq->post_psn;
	}
	if (mask & IB_QP_RQ_PSN) {
		qp->resp.psn = attr->rq_psn & TBV_WIRE_24BIT;
		qp->attr.rq_psn = qp->resp.psn;
	}
}

static void take_values(struct tbv_qp *qp, const struct ib_qp_attr *attr,
			int mask)
{
	struct ib_qp_attr *own = &qp->attr;

	if (mask & IB_QP_PORT)
		own->port_num = attr->port_num;
	if (mask & IB_QP_PKEY_INDEX)
		own->pkey_index = attr->pkey_index;
	if (mask & IB_QP_ACCESS_FLAGS)
		own->qp_access_flags = attr->qp_access_flags;
	if (mask & IB_QP_AV) {
		own->ah_attr = attr->ah_attr;
		/* The core's reference is its own business. */
		own->ah_attr.grh.sgid_attr = NULL;
		qp->path = find_path(qp->dev, &attr->ah_attr);
	}
	if (mask & IB_QP_PATH_MTU)
		own->path_mtu = attr->path_mtu;
	if (mask & IB_QP_TIMEOUT)
		own->timeout = attr->timeout;
	if (mask & IB_QP_RETRY_CNT)
		own->retry_cnt = attr->retry_cnt;
	if (mask & IB_QP_RNR_RETRY)
		own->rnr_retry = attr->rnr_retry;
	if (mask & IB_QP_MIN_RNR_TIMER)
		own->min_rnr_timer = attr->min_rnr_timer;
	if (mask & IB_QP_DEST_QPN)
		own->dest_qp_num = attr->dest_qp_num;
	if (mask & IB_QP_MAX_QP_RD_ATOMIC)
		own->max_rd_atomic = attr->max_rd_atomic;
	if (mask & IB_QP_MAX_DEST_RD_ATOMIC)
		own->max_dest_rd_atomic = attr->max_dest_rd_atomic;
}

int tbv_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		  struct ib_udata *udata)
{
	struct tbv_qp *qp = to_tbv_qp(ibqp);
	int err;

	if (mask & ~IB_QP_ATTR_STANDARD_BITS)
		return -EOPNOTSUPP;

	spin_lock_bh(&qp->lock);
	err = READ_ONCE(qp->dev->leaving) ? -ENODEV :
					    check_transition(qp, attr, mask);
	if (!err)
		err = check_values(qp, attr, mask);
	if (err)
		goto unlock;

	take_psns(qp, attr, mask);
	take_values(qp, attr, mask);
	if (mask & IB_QP_STATE) {
		if (attr->qp_state == IB_QPS_RESET)
			tbv_qp_reset(qp);
		else if (attr->qp_state == IB_QPS_ERR)
			tbv_qp_error(qp);
		else
			tbv_qp_set_state(qp, attr->qp_state);
	}
unlock:
	spin_unlock_bh(&qp->lock);
	return err;
}

int tbv_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		 struct ib_qp_init_attr *init)
{
	struct tbv_qp *qp = to_tbv_qp(ibqp);

	spin_lock_bh(&qp->lock);
	*attr = qp->attr;
	attr->qp_state = qp->state;
	attr->cur_qp_state = qp->state;
	attr->path_mig_state = IB_MIG_MIGRATED;
	attr->sq_psn = qp->sq.next_psn;
	attr->rq_psn = qp->resp.psn;
	spin_unlock_bh(&qp->lock);

	init->cap = attr->cap;
	init->sq_sig_type = qp->sig_all ? IB_SIGNAL_ALL_WR : IB_SIGNAL_REQ_WR;
	init->qp_type = IB_QPT_RC;
	init->send_cq = ibqp->send_cq;
	init->recv_cq = ibqp->recv_cq;
	return 0;
}
