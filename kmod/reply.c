// SPDX-License-Identifier: GPL-2.0
/*
 * Replies: at most one is owed per QP. A reply tells the responder's state, not
 * an event, so a newer one stands in for those that could not be sent; only a
 * final one (an error that ends the QP) is never replaced.
 */
#include "tbv.h"
#include "trace.h"

static bool is_final(u8 syndrome)
{
	return syndrome == TBV_SYN_NAK_INVALID || syndrome == TBV_SYN_NAK_OP;
}

/**
 * tbv_reply_run - send the reply that is owed, if any
 * @qp: locked
 *
 * Return: false when there was no room; the QP then waits on its path.
 */
bool tbv_reply_run(struct tbv_qp *qp)
{
	struct tbv_resp *resp = &qp->resp;
	struct tbv_wire_hdr hdr = {
		.opcode = TBV_WIRE_REPLY,
		.syndrome = resp->reply,
		.dest_qpn = qp->attr.dest_qp_num,
		.src_qpn = qp->qpn,
		.psn = resp->psn,
	};
	struct tbv_frame *frame;

	lockdep_assert_held(&qp->lock);
	if (resp->reply == TBV_SYN_NONE)
		return true;
	frame = tbv_path_get(qp->path, qp, TBV_FRAME_CONTROL);
	if (!frame)
		return false;

	if (resp->reply == TBV_SYN_ACK)
		hdr.psn = tbv_psn_add(resp->psn, TBV_WIRE_24BIT);
	else if (resp->reply == TBV_SYN_RNR)
		hdr.rnr_timer = qp->attr.min_rnr_timer;
	resp->reply = TBV_SYN_NONE;
	tbv_path_send(qp->path, frame, &hdr);
	tbv_count(qp->dev, TBV_TX_REPLIES);
	trace_ack(qp->dev->index, qp->qpn, false, hdr.psn, hdr.syndrome);
	return true;
}

void tbv_reply(struct tbv_qp *qp, enum tbv_wire_syndrome syndrome)
{
	if (!is_final(qp->resp.reply))
		qp->resp.reply = syndrome;
	tbv_reply_run(qp);
}
