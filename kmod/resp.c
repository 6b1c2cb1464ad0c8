// SPDX-License-Identifier: GPL-2.0
/*
 * Responder: takes requests in PSN order and puts messages together.
 *
 * A message in the making:
 *
 *            first frame, a receive is posted
 *     IDLE --------------------------------------> IN MESSAGE --+ next frame
 *      |  ^                                         |      ^    |
 *      |  |               last frame: completion    |      +----+
 *      |  +-----------------------------------------+
 *      |  (a message of one frame does both at once)
 *      |
 *      +--> no receive posted: RNR reply, the frame has not happened
 *
 * A frame before its turn is answered once with a sequence error; one that was
 * there before is acknowledged again and never written again. A frame that
 * breaks the rules ends the QP on both sides.
 */
#include "tbv.h"
#include "trace.h"

/* The message cannot be finished: @status here, @syndrome over there. */
static void fail(struct tbv_qp *qp, enum ib_wc_status status,
		 enum tbv_wire_syndrome syndrome)
{
	tbv_reply(qp, syndrome);
	if (qp->rq.tail != qp->rq.head && status != IB_WC_SUCCESS)
		tbv_complete_recv(qp, status, NULL);
	tbv_qp_error(qp);
	tbv_qp_event(qp, IB_EVENT_QP_REQ_ERR);
}

static struct ib_sge *current_sge(struct tbv_qp *qp)
{
	struct tbv_rq *rq = &qp->rq;

	return rq->sge + (size_t)(rq->tail & rq->mask) * rq->max_sge;
}

static struct tbv_recv_wqe *current_wqe(struct tbv_qp *qp)
{
	return &qp->rq.wqe[qp->rq.tail & qp->rq.mask];
}

/* First frame of a message: find a receive that can take all of it. */
static bool begin_message(struct tbv_qp *qp, const struct tbv_wire_hdr *hdr)
{
	struct tbv_resp *resp = &qp->resp;

	if (hdr->frag_offset) {
		fail(qp, IB_WC_SUCCESS, TBV_SYN_NAK_INVALID);
		return false;
	}
	if (qp->rq.tail == qp->rq.head) {
		tbv_count(qp->dev, TBV_RX_RNR);
		trace_rnr(qp->dev->index, qp->qpn, false, hdr->psn,
			  qp->attr.min_rnr_timer, 0);
		/* What follows is not missing, it was refused. */
		resp->nak_sent = true;
		tbv_reply(qp, TBV_SYN_RNR);
		return false;
	}
	if (hdr->total_len > current_wqe(qp)->length) {
		fail(qp, IB_WC_LOC_LEN_ERR, TBV_SYN_NAK_INVALID);
		return false;
	}
	if (tbv_sge_check(qp, current_sge(qp), current_wqe(qp)->num_sge,
			  hdr->total_len, IB_ACCESS_LOCAL_WRITE)) {
		fail(qp, IB_WC_LOC_PROT_ERR, TBV_SYN_NAK_OP);
		return false;
	}
	resp->in_message = true;
	resp->opcode = hdr->opcode;
	resp->total_len = hdr->total_len;
	resp->offset = 0;
	return true;
}

static bool fits_message(const struct tbv_resp *resp,
			 const struct tbv_wire_hdr *hdr)
{
	return hdr->opcode == resp->opcode &&
	       hdr->total_len == resp->total_len &&
	       hdr->frag_offset == resp->offset;
}

/* The frame whose turn it is. */
static void take_frame(struct tbv_qp *qp, const struct tbv_wire_hdr *hdr,
		       void *payload)
{
	struct tbv_resp *resp = &qp->resp;

	if (!resp->in_message && !begin_message(qp, hdr))
		return;
	if (!fits_message(resp, hdr)) {
		fail(qp, IB_WC_SUCCESS, TBV_SYN_NAK_INVALID);
		return;
	}
	if (tbv_sge_copy(qp, current_sge(qp), current_wqe(qp)->num_sge,
			 hdr->frag_offset, payload, hdr->payload_len, true)) {
		fail(qp, IB_WC_LOC_PROT_ERR, TBV_SYN_NAK_OP);
		return;
	}
	tbv_count_add(qp->dev, TBV_RX_BYTES, hdr->payload_len);
	trace_rx_copy(qp->dev->index, qp->qpn, hdr->psn, hdr->frag_offset,
		      hdr->payload_len);

	resp->psn = tbv_psn_add(resp->psn, 1);
	resp->nak_sent = false;
	resp->offset += hdr->payload_len;
	if (tbv_wire_is_last(hdr)) {
		resp->in_message = false;
		tbv_complete_recv(qp, IB_WC_SUCCESS, hdr);
	}
	if (hdr->flags & TBV_WIRE_F_ACK_REQ)
		tbv_reply(qp, TBV_SYN_ACK);
}

/**
 * tbv_resp_request - a request frame arrived
 * @qp: locked
 * @hdr: decoded; it comes from the QP this one is connected to
 * @payload: hdr->payload_len bytes
 */
void tbv_resp_request(struct tbv_qp *qp, const struct tbv_wire_hdr *hdr,
		      void *payload)
{
	struct tbv_resp *resp = &qp->resp;
	int ahead;

	if (qp->state != IB_QPS_RTR && qp->state != IB_QPS_RTS) {
		tbv_count(qp->dev, TBV_RX_STALE);
		return;
	}
	if (qp->state == IB_QPS_RTR && !resp->established) {
		resp->established = true;
		tbv_qp_event(qp, IB_EVENT_COMM_EST);
	}

	ahead = tbv_psn_diff(hdr->psn, resp->psn);
	if (ahead < 0) {
		tbv_count(qp->dev, TBV_RX_DUPLICATES);
		if (hdr->flags & TBV_WIRE_F_ACK_REQ)
			tbv_reply(qp, TBV_SYN_ACK);
	} else if (ahead > 0) {
		tbv_count(qp->dev, TBV_RX_GAPS);
		if (!resp->nak_sent) {
			resp->nak_sent = true;
			tbv_reply(qp, TBV_SYN_NAK_SEQ);
		}
	} else {
		take_frame(qp, hdr, payload);
	}
}
