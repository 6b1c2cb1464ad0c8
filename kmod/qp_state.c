// SPDX-License-Identifier: GPL-2.0
/*
 * QP states, and what becomes of work requests.
 *
 *            modify            modify            modify
 *   RESET ----------> INIT ----------> RTR ----------> RTS
 *     ^                 |               |               |
 *     |                 |   modify, or a failed request |
 *     |                 +---------------+---------------+
 *     | modify                          v
 *     +------------------------------ ERR
 *
 * (RESET is reached from every state.)
 *
 *           post_recv  post_send  requests in  requests out
 *   RESET   refused    refused    dropped      none
 *   INIT    queued     refused    dropped      none
 *   RTR     queued     refused    served       none
 *   RTS     queued     queued     served       sent
 *   ERR     flushed    flushed    dropped      none
 *
 * A work request ends once: by success, by an error of its own that takes the
 * QP to ERR, or flushed on the way there. RESET forgets requests and removes
 * the completions that were not polled.
 */
#include "tbv.h"
#include "trace.h"

void tbv_qp_set_state(struct tbv_qp *qp, enum ib_qp_state state)
{
	lockdep_assert_held(&qp->lock);
	if (qp->state == state)
		return;
	trace_qp_state(qp->dev->index, qp->qpn, qp->state, state,
		       task_tgid_nr(current));
	qp->state = state;
}

void tbv_qp_event(struct tbv_qp *qp, enum ib_event_type type)
{
	struct ib_event event = {
		.device = qp->base.device,
		.event = type,
		.element.qp = &qp->base,
	};

	if (qp->base.event_handler)
		qp->base.event_handler(&event, qp->base.qp_context);
}

static void count_end(struct tbv_qp *qp, enum ib_wc_status status)
{
	switch (status) {
	case IB_WC_SUCCESS:
		tbv_count(qp->dev, TBV_WR_SUCCESS);
		break;
	case IB_WC_WR_FLUSH_ERR:
		tbv_count(qp->dev, TBV_WR_FLUSHED);
		break;
	default:
		tbv_count(qp->dev, TBV_WR_ERROR);
		break;
	}
}

/* The oldest send ends. Failure is reported even when success was not wanted. */
void tbv_complete_send(struct tbv_qp *qp, enum ib_wc_status status)
{
	struct tbv_sq *sq = &qp->sq;
	struct tbv_send_wqe *wqe = &sq->wqe[sq->tail & sq->mask];
	struct ib_wc wc = {
		.wr_id = wqe->wr_id,
		.status = status,
		.opcode = IB_WC_SEND,
		.qp = &qp->stub->qp,
	};

	count_end(qp, status);
	if (wqe->signalled || status != IB_WC_SUCCESS)
		tbv_cq_push(to_tbv_cq(qp->base.send_cq), &wc, wqe->seq,
			    wqe->signalled, false);
	sq->tail++;
}

/* The oldest receive ends; @hdr is the message's last frame when it is well. */
void tbv_complete_recv(struct tbv_qp *qp, enum ib_wc_status status,
		       const struct tbv_wire_hdr *hdr)
{
	struct tbv_rq *rq = &qp->rq;
	struct tbv_recv_wqe *wqe = &rq->wqe[rq->tail & rq->mask];
	bool solicited = false;
	struct ib_wc wc = {
		.wr_id = wqe->wr_id,
		.status = status,
		.opcode = IB_WC_RECV,
		.qp = &qp->stub->qp,
		.port_num = 1,
	};

	count_end(qp, status);
	if (status == IB_WC_SUCCESS) {
		wc.byte_len = hdr->total_len;
		wc.src_qp = hdr->src_qpn;
		wc.slid = rdma_ah_get_dlid(&qp->attr.ah_attr);
		if (hdr->opcode == TBV_WIRE_SEND_IMM) {
			wc.wc_flags = IB_WC_WITH_IMM;
			wc.ex.imm_data = cpu_to_be32(hdr->imm);
		}
		solicited = hdr->flags & TBV_WIRE_F_SOLICITED;
	}
	tbv_cq_push(to_tbv_cq(qp->base.recv_cq), &wc, wqe->seq, true,
		    solicited);
	rq->tail++;
}

/* To ERR: whatever is queued is flushed. A reply still owed is still sent. */
void tbv_qp_error(struct tbv_qp *qp)
{
	lockdep_assert_held(&qp->lock);
	tbv_qp_set_state(qp, IB_QPS_ERR);
	tbv_retry_stop(qp);
	qp->resp.in_message = false;
	while (qp->sq.tail != qp->sq.head)
		tbv_complete_send(qp, IB_WC_WR_FLUSH_ERR);
	qp->sq.cur = qp->sq.head;
	while (qp->rq.tail != qp->rq.head)
		tbv_complete_recv(qp, IB_WC_WR_FLUSH_ERR, NULL);
}

/* To RESET: as if just created, only that sequence numbers go on. */
void tbv_qp_reset(struct tbv_qp *qp)
{
	struct tbv_sq *sq = &qp->sq;
	struct tbv_rq *rq = &qp->rq;

	lockdep_assert_held(&qp->lock);
	tbv_qp_set_state(qp, IB_QPS_RESET);
	tbv_retry_stop(qp);
	if (qp->path)
		tbv_path_forget(qp->path, qp);
	qp->path = NULL;

	sq->tail = 0;
	sq->cur = 0;
	sq->head = 0;
	sq->cur_offset = 0;
	sq->retries = 0;
	sq->rnr_retries = 0;
	sq->rnr_wait = false;
	sq->fault = IB_WC_SUCCESS;
	rq->tail = 0;
	rq->head = 0;
	memset(&qp->resp, 0, sizeof(qp->resp));
	tbv_cq_purge(to_tbv_cq(qp->base.send_cq), qp->stub);
	tbv_cq_purge(to_tbv_cq(qp->base.recv_cq), qp->stub);
}
