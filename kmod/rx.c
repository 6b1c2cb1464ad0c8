// SPDX-License-Identifier: GPL-2.0
/* A received frame: is it whole, what is it, whose is it? */
#include "tbv.h"
#include "trace.h"

/* Hand it to the QP it is for, if that is connected to where it comes from. */
static void to_qp(struct tbv_path *path, const struct tbv_wire_hdr *hdr,
		  void *payload)
{
	struct tbv_qp *qp = tbv_qp_get(path->dev, hdr->dest_qpn);

	if (!qp) {
		tbv_count(path->dev, TBV_RX_STALE);
		return;
	}
	spin_lock_bh(&qp->lock);
	if (qp->path != path || qp->attr.dest_qp_num != hdr->src_qpn)
		tbv_count(path->dev, TBV_RX_STALE);
	else if (tbv_wire_is_request(hdr->opcode))
		tbv_resp_request(qp, hdr, payload);
	else
		tbv_req_reply(qp, hdr);
	spin_unlock_bh(&qp->lock);
	tbv_qp_put(qp);
}

static void repost(struct tbv_path *path, struct tbv_frame *frame)
{
	/* Refused only while the path stops; the frame is freed with it. */
	path->rx->ops->post(path->rx, frame);
}

void tbv_rx_done(struct tbv_ring *ring, struct tbv_frame *frame,
		 bool canceled)
{
	struct tbv_path *path = ring->owner;
	struct tbv_dev *dev = path->dev;
	struct tbv_wire_hdr hdr;

	if (canceled)
		return;
	tbv_count(dev, TBV_RX_FRAMES);
	if (frame->flags & TBV_RING_F_ERROR || frame->sof != TBV_RING_SOF ||
	    frame->eof != TBV_RING_EOF) {
		tbv_count(dev, TBV_RX_RING_ERROR);
		goto repost;
	}
	if (tbv_wire_decode(&hdr, frame->data, frame->size)) {
		tbv_count(dev, TBV_RX_FORMAT_ERROR);
		goto repost;
	}
	trace_rx_frame(dev->index, hdr.dest_qpn, hdr.opcode, hdr.flags,
		       hdr.psn, hdr.path_seq, hdr.payload_len, path->id);

	tbv_credit_received(path, hdr.credit_limit);
	if (hdr.opcode == TBV_WIRE_CREDIT_REQ)
		tbv_credit_wanted(path);
	else if (hdr.opcode != TBV_WIRE_CREDIT)
		to_qp(path, &hdr, frame->data + TBV_WIRE_HDR_SIZE);

	repost(path, frame);
	tbv_credit_reposted(path, hdr.path_seq);
	return;

repost:
	repost(path, frame);
}
