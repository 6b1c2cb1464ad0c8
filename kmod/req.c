// SPDX-License-Identifier: GPL-2.0
/*
 * Requester: cuts work requests into frames and takes the replies.
 *
 * PSNs count frames. una_psn <= next_psn <= max_psn: everything before una is
 * acknowledged; next goes back on loss, max never does.
 *
 * A request whose memory cannot be read stops the queue at its place and fails
 * once all before it are acknowledged, so that completions stay in order. When
 * sending goes back it is forgotten, to be found again.
 */
#include "tbv.h"
#include "trace.h"

/* Frames on their way per QP, and how often one asks for a reply. */
#define REQ_WINDOW	1024
#define REQ_ACK_EVERY	64
/* Frames sent in one go before others get their turn. */
#define REQ_BUDGET	64

static bool may_send(const struct tbv_qp *qp)
{
	const struct tbv_sq *sq = &qp->sq;

	return qp->state == IB_QPS_RTS && sq->cur != sq->head &&
	       sq->fault == IB_WC_SUCCESS && !sq->rnr_wait &&
	       tbv_psn_diff(sq->next_psn, sq->una_psn) < REQ_WINDOW;
}

/* The oldest request failed: it ends with @status, the QP in ERR. */
void tbv_req_fail(struct tbv_qp *qp, enum ib_wc_status status)
{
	tbv_complete_send(qp, status);
	tbv_qp_error(qp);
}

static void stop_at_fault(struct tbv_qp *qp)
{
	qp->sq.fault = IB_WC_LOC_PROT_ERR;
	if (qp->sq.cur == qp->sq.tail)
		tbv_req_fail(qp, qp->sq.fault);
}

static int copy_payload(struct tbv_qp *qp, const struct tbv_send_wqe *wqe,
			u8 *to, u32 length)
{
	struct tbv_sq *sq = &qp->sq;
	size_t slot = sq->cur & sq->mask;

	if (wqe->is_inline) {
		memcpy(to, sq->inline_data + slot * sq->max_inline +
		       sq->cur_offset, length);
		return 0;
	}
	return tbv_sge_copy(qp, sq->sge + slot * sq->max_sge, wqe->num_sge,
			    sq->cur_offset, to, length, false);
}

static void fill_header(struct tbv_qp *qp, const struct tbv_send_wqe *wqe,
			struct tbv_wire_hdr *hdr)
{
	struct tbv_sq *sq = &qp->sq;

	hdr->opcode = wqe->wire_opcode;
	hdr->dest_qpn = qp->attr.dest_qp_num;
	hdr->src_qpn = qp->qpn;
	hdr->psn = sq->next_psn;
	hdr->total_len = wqe->length;
	hdr->frag_offset = sq->cur_offset;
	hdr->payload_len = min_t(u32, wqe->length - sq->cur_offset,
				 TBV_WIRE_MAX_PAYLOAD);
	hdr->imm = wqe->imm;
	if (wqe->solicited)
		hdr->flags |= TBV_WIRE_F_SOLICITED;
	if (tbv_wire_is_last(hdr) || hdr->psn % REQ_ACK_EVERY == 0)
		hdr->flags |= TBV_WIRE_F_ACK_REQ;
}

/* The frame at next_psn is out. */
static void advance(struct tbv_qp *qp, const struct tbv_wire_hdr *hdr)
{
	struct tbv_sq *sq = &qp->sq;

	sq->next_psn = tbv_psn_add(sq->next_psn, 1);
	if (tbv_psn_diff(sq->next_psn, sq->max_psn) > 0)
		sq->max_psn = sq->next_psn;
	if (tbv_wire_is_last(hdr)) {
		sq->cur++;
		sq->cur_offset = 0;
	} else {
		sq->cur_offset += hdr->payload_len;
	}
}

/* Send one frame; false when there is nothing more to do for now. */
static bool send_frame(struct tbv_qp *qp)
{
	struct tbv_sq *sq = &qp->sq;
	size_t slot = sq->cur & sq->mask;
	struct tbv_send_wqe *wqe = &sq->wqe[slot];
	struct tbv_wire_hdr hdr = {};
	struct tbv_frame *frame;

	if (!sq->cur_offset && !wqe->is_inline &&
	    tbv_sge_check(qp, sq->sge + slot * sq->max_sge, wqe->num_sge,
			  wqe->length, 0)) {
		stop_at_fault(qp);
		return false;
	}
	frame = tbv_path_get(qp->path, qp, TBV_FRAME_DATA);
	if (!frame)
		return false;
	fill_header(qp, wqe, &hdr);
	if (copy_payload(qp, wqe, frame->data + TBV_WIRE_HDR_SIZE,
			 hdr.payload_len)) {
		tbv_path_put(qp->path, frame);
		stop_at_fault(qp);
		return false;
	}
	tbv_path_send(qp->path, frame, &hdr);
	advance(qp, &hdr);
	return true;
}

/* Send what may be sent. */
void tbv_req_run(struct tbv_qp *qp)
{
	u32 budget = REQ_BUDGET;
	bool sent = false;

	lockdep_assert_held(&qp->lock);
	while (may_send(qp)) {
		if (!budget--) {
			tbv_path_yield(qp->path, qp);
			break;
		}
		if (!send_frame(qp))
			break;
		sent = true;
	}
	if (sent)
		tbv_retry_start(qp);
}

/* Sending goes on at @psn, which is between una_psn and max_psn. */
void tbv_req_go_to(struct tbv_qp *qp, u32 psn)
{
	struct tbv_sq *sq = &qp->sq;
	const struct tbv_send_wqe *wqe;
	int into;

	sq->next_psn = psn;
	sq->cur_offset = 0;
	/* What lies before the request that cannot be sent must be sent again. */
	sq->fault = IB_WC_SUCCESS;
	for (sq->cur = sq->tail; sq->cur != sq->head; sq->cur++) {
		wqe = &sq->wqe[sq->cur & sq->mask];
		into = tbv_psn_diff(psn, wqe->first_psn);
		if (into < (int)wqe->frames) {
			sq->cur_offset = into * TBV_WIRE_MAX_PAYLOAD;
			break;
		}
	}
}

/*
 * All frames before @end_psn have arrived: complete their requests. True when
 * that was news.
 */
static bool acknowledge(struct tbv_qp *qp, u32 end_psn)
{
	struct tbv_sq *sq = &qp->sq;
	const struct tbv_send_wqe *wqe;

	if (tbv_psn_diff(end_psn, sq->una_psn) <= 0)
		return false;
	sq->una_psn = end_psn;
	while (sq->tail != sq->head) {
		wqe = &sq->wqe[sq->tail & sq->mask];
		if (tbv_psn_diff(end_psn, wqe->first_psn) < (int)wqe->frames)
			break;
		tbv_complete_send(qp, IB_WC_SUCCESS);
	}
	if (tbv_psn_diff(sq->next_psn, end_psn) < 0)
		tbv_req_go_to(qp, end_psn);

	sq->retries = 0;
	sq->rnr_retries = 0;
	sq->nak_psn = TBV_PSN_NONE;
	tbv_retry_stop(qp);
	if (sq->una_psn != sq->max_psn)
		tbv_retry_start(qp);
	if (sq->fault != IB_WC_SUCCESS && sq->cur == sq->tail)
		tbv_req_fail(qp, sq->fault);
	return true;
}

/* A reply came: is it about something that was sent? */
static bool reply_fits(struct tbv_qp *qp, const struct tbv_wire_hdr *hdr,
		       u32 end_psn)
{
	struct tbv_sq *sq = &qp->sq;
	int limit = tbv_psn_diff(sq->max_psn, sq->una_psn);
	int end = tbv_psn_diff(end_psn, sq->una_psn);

	if (end < 0)
		return false;
	if (hdr->syndrome == TBV_SYN_ACK ? end <= limit : end < limit)
		return true;
	tbv_count(qp->dev, TBV_RX_REPLY_ERROR);
	return false;
}

void tbv_req_reply(struct tbv_qp *qp, const struct tbv_wire_hdr *hdr)
{
	u32 end_psn = hdr->psn;

	tbv_count(qp->dev, TBV_RX_REPLIES);
	trace_ack(qp->dev->index, qp->qpn, true, hdr->psn, hdr->syndrome);
	if (qp->state != IB_QPS_RTS)
		return;
	if (hdr->syndrome == TBV_SYN_ACK)
		end_psn = tbv_psn_add(hdr->psn, 1);
	if (!reply_fits(qp, hdr, end_psn))
		return;

	acknowledge(qp, end_psn);
	if (qp->state != IB_QPS_RTS)
		return;
	switch (hdr->syndrome) {
	case TBV_SYN_ACK:
		break;
	case TBV_SYN_NAK_SEQ:
		tbv_retry_sequence(qp, hdr->psn);
		break;
	case TBV_SYN_RNR:
		tbv_retry_rnr(qp, hdr->psn, hdr->rnr_timer);
		break;
	case TBV_SYN_NAK_INVALID:
		tbv_req_fail(qp, IB_WC_REM_INV_REQ_ERR);
		break;
	default:
		tbv_req_fail(qp, IB_WC_REM_OP_ERR);
		break;
	}
	tbv_req_run(qp);
}
