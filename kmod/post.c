// SPDX-License-Identifier: GPL-2.0
/*
 * Posting. Everything that can fail happens before a request is queued and its
 * PSNs are taken; the QP lock orders concurrent posters.
 */
#include <linux/uaccess.h>

#include "tbv.h"
#include "trace.h"

#define SEND_FLAGS (IB_SEND_FENCE | IB_SEND_SIGNALED | IB_SEND_SOLICITED | \
		    IB_SEND_INLINE)

static int sum_sges(const struct ib_sge *sge, int num_sge, u32 *length)
{
	u64 sum = 0;
	int i;

	for (i = 0; i < num_sge; i++)
		sum += sge[i].length;
	if (sum > TBV_WIRE_MAX_MSG)
		return -EINVAL;
	*length = sum;
	return 0;
}

static int check_send(struct tbv_qp *qp, const struct ib_send_wr *wr,
		      u32 *length)
{
	int err;

	if (wr->opcode != IB_WR_SEND && wr->opcode != IB_WR_SEND_WITH_IMM)
		return -EOPNOTSUPP;
	if (wr->send_flags & ~SEND_FLAGS)
		return -EINVAL;
	if (wr->num_sge < 0 || wr->num_sge > qp->sq.max_sge)
		return -EINVAL;
	err = sum_sges(wr->sg_list, wr->num_sge, length);
	if (err)
		return err;
	if (wr->send_flags & IB_SEND_INLINE && *length > qp->sq.max_inline)
		return -EINVAL;
	return 0;
}

/* Inline data is in the caller's memory, and read before posting returns. */
static int copy_inline(u8 *to, const struct ib_send_wr *wr)
{
	int i;

	for (i = 0; i < wr->num_sge; i++) {
		const struct ib_sge *sge = &wr->sg_list[i];

		if (copy_from_user(to, u64_to_user_ptr(sge->addr), sge->length))
			return -EFAULT;
		to += sge->length;
	}
	return 0;
}

static void queue_send(struct tbv_qp *qp, const struct ib_send_wr *wr,
		       u32 length, const u8 *inline_data)
{
	struct tbv_sq *sq = &qp->sq;
	u32 slot = sq->head & sq->mask;
	struct tbv_send_wqe *wqe = &sq->wqe[slot];

	wqe->wr_id = wr->wr_id;
	wqe->seq = sq->seq++;
	wqe->length = length;
	wqe->frames = tbv_wire_frames(length);
	wqe->first_psn = sq->post_psn;
	wqe->num_sge = wr->num_sge;
	wqe->signalled = qp->sig_all || wr->send_flags & IB_SEND_SIGNALED;
	wqe->solicited = wr->send_flags & IB_SEND_SOLICITED;
	wqe->is_inline = wr->send_flags & IB_SEND_INLINE;
	if (wr->opcode == IB_WR_SEND_WITH_IMM) {
		wqe->wire_opcode = TBV_WIRE_SEND_IMM;
		wqe->imm = be32_to_cpu(wr->ex.imm_data);
	} else {
		wqe->wire_opcode = TBV_WIRE_SEND;
		wqe->imm = 0;
	}
	if (wqe->is_inline)
		memcpy(sq->inline_data + (size_t)slot * sq->max_inline,
		       inline_data, length);
	else
		memcpy(sq->sge + (size_t)slot * sq->max_sge, wr->sg_list,
		       wr->num_sge * sizeof(*sq->sge));

	sq->post_psn = tbv_psn_add(sq->post_psn, wqe->frames);
	sq->head++;
	tbv_count(qp->dev, TBV_WR_SEND);
	trace_post_send(qp->dev->index, qp->qpn, wqe->seq, wqe->wr_id,
			wr->opcode, wqe->signalled, length, wr->num_sge);
}

static int post_one_send(struct tbv_qp *qp, const struct ib_send_wr *wr)
{
	u8 inline_data[TBV_MAX_INLINE];
	u32 length;
	int err;

	err = check_send(qp, wr, &length);
	if (!err && wr->send_flags & IB_SEND_INLINE)
		err = copy_inline(inline_data, wr);
	if (err)
		return err;

	spin_lock_bh(&qp->lock);
	if (qp->state != IB_QPS_RTS && qp->state != IB_QPS_ERR) {
		err = -EINVAL;
	} else if (qp->sq.head - qp->sq.tail == qp->sq.size) {
		err = -ENOMEM;
	} else {
		queue_send(qp, wr, length, inline_data);
		if (qp->state == IB_QPS_ERR)
			tbv_qp_error(qp);
		else
			tbv_req_run(qp);
	}
	spin_unlock_bh(&qp->lock);
	return err;
}

int tbv_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		  const struct ib_send_wr **bad_wr)
{
	struct tbv_qp *qp = to_tbv_qp(ibqp);
	int err;

	for (; wr; wr = wr->next) {
		err = post_one_send(qp, wr);
		if (err) {
			*bad_wr = wr;
			return err;
		}
	}
	return 0;
}

static void queue_recv(struct tbv_qp *qp, const struct ib_recv_wr *wr,
		       u32 length)
{
	struct tbv_rq *rq = &qp->rq;
	u32 slot = rq->head & rq->mask;
	struct tbv_recv_wqe *wqe = &rq->wqe[slot];

	wqe->wr_id = wr->wr_id;
	wqe->seq = rq->seq++;
	wqe->length = length;
	wqe->num_sge = wr->num_sge;
	memcpy(rq->sge + (size_t)slot * rq->max_sge, wr->sg_list,
	       wr->num_sge * sizeof(*rq->sge));
	rq->head++;
	tbv_count(qp->dev, TBV_WR_RECV);
	trace_post_recv(qp->dev->index, qp->qpn, wqe->seq, wqe->wr_id,
			IB_WC_RECV, true, length, wr->num_sge);
}

static int post_one_recv(struct tbv_qp *qp, const struct ib_recv_wr *wr)
{
	u32 length;
	int err;

	if (wr->num_sge < 0 || wr->num_sge > qp->rq.max_sge)
		return -EINVAL;
	err = sum_sges(wr->sg_list, wr->num_sge, &length);
	if (err)
		return err;

	spin_lock_bh(&qp->lock);
	if (qp->state == IB_QPS_RESET) {
		err = -EINVAL;
	} else if (qp->rq.head - qp->rq.tail == qp->rq.size) {
		err = -ENOMEM;
	} else {
		queue_recv(qp, wr, length);
		if (qp->state == IB_QPS_ERR)
			tbv_qp_error(qp);
	}
	spin_unlock_bh(&qp->lock);
	return err;
}

int tbv_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		  const struct ib_recv_wr **bad_wr)
{
	struct tbv_qp *qp = to_tbv_qp(ibqp);
	int err;

	for (; wr; wr = wr->next) {
		err = post_one_recv(qp, wr);
		if (err) {
			*bad_wr = wr;
			return err;
		}
	}
	return 0;
}
