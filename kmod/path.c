// SPDX-License-Identifier: GPL-2.0
/*
 * Path: the transmit slots towards one destination, and the QPs that wait for
 * one. Data frames leave a reserve of slots and credits to control frames, or
 * two full directions would starve each other's acknowledgements.
 *
 * A QP that cannot send joins the waiters and is run from wake_work, first
 * come first served; while anyone waits, newcomers queue up behind.
 */
#include <linux/mm.h>
#include <linux/slab.h>

#include "tbv.h"
#include "trace.h"

static bool has_data_room(const struct tbv_path *path)
{
	return path->free_count > TBV_CONTROL_RESERVE && tbv_credit_left(path);
}

void tbv_path_wake_locked(struct tbv_path *path)
{
	lockdep_assert_held(&path->lock);
	if (path->stopping)
		return;
	if (path->credit_wanted || !list_empty(&path->waiters))
		queue_work(tbv_bh_wq, &path->wake_work);
}

static void wait_locked(struct tbv_path *path, struct tbv_qp *qp)
{
	if (!qp->waiting) {
		qp->waiting = true;
		refcount_inc(&qp->refs);
		list_add_tail(&qp->wait_node, &path->waiters);
	}
	if (!timer_pending(&path->stall_timer) && !path->stopping)
		mod_timer(&path->stall_timer, jiffies + TBV_STALL_JIFFIES);
}

/* Let others send before @qp goes on; called with the QP locked. */
void tbv_path_yield(struct tbv_path *path, struct tbv_qp *qp)
{
	spin_lock_bh(&path->lock);
	wait_locked(path, qp);
	tbv_path_wake_locked(path);
	spin_unlock_bh(&path->lock);
}

static bool may_take(struct tbv_path *path, struct tbv_qp *qp,
		     enum tbv_frame_class class)
{
	if (path->stopping || !path->free_count)
		return false;
	switch (class) {
	case TBV_FRAME_DATA:
		if (!list_empty(&path->waiters) && path->serving != qp)
			return false;
		return has_data_room(path);
	case TBV_FRAME_CONTROL:
		return tbv_credit_control(path);
	case TBV_FRAME_PROBE:
		return true;
	}
	return false;
}

/**
 * tbv_path_get - a transmit frame
 * @path: where to
 * @qp: locked; joins the waiters when there is none. NULL for the path's own
 *	frames
 * @class: what it is for
 *
 * Return: the frame, to be given to tbv_path_send() or tbv_path_put(), or NULL.
 */
struct tbv_frame *tbv_path_get(struct tbv_path *path, struct tbv_qp *qp,
			       enum tbv_frame_class class)
{
	struct tbv_frame *frame = NULL;

	spin_lock_bh(&path->lock);
	if (may_take(path, qp, class)) {
		frame = list_first_entry(&path->free, struct tbv_frame, node);
		list_del_init(&frame->node);
		path->free_count--;
		path->reserved++;
	} else if (qp && !qp->waiting) {
		tbv_count(path->dev, TBV_TX_STALLS);
		trace_credit_stall(path->dev->index, qp->qpn, path->id,
				   tbv_credit_left(path), path->free_count);
		wait_locked(path, qp);
	}
	spin_unlock_bh(&path->lock);
	return frame;
}

static void give_back(struct tbv_path *path, struct tbv_frame *frame)
{
	list_add(&frame->node, &path->free);
	path->free_count++;
	tbv_path_wake_locked(path);
}

void tbv_path_put(struct tbv_path *path, struct tbv_frame *frame)
{
	spin_lock_bh(&path->lock);
	path->reserved--;
	give_back(path, frame);
	spin_unlock_bh(&path->lock);
}

/**
 * tbv_path_send - number a frame and put it on the ring
 * @path: where to
 * @frame: from tbv_path_get(), with @hdr->payload_len bytes of payload in place
 * @hdr: everything but what the path itself fills in
 */
void tbv_path_send(struct tbv_path *path, struct tbv_frame *frame,
		   struct tbv_wire_hdr *hdr)
{
	struct tbv_dev *dev = path->dev;

	frame->size = TBV_WIRE_HDR_SIZE + hdr->payload_len;
	frame->sof = TBV_RING_SOF;
	frame->eof = TBV_RING_EOF;

	spin_lock_bh(&path->lock);
	hdr->path_seq = path->tx_seq++;
	hdr->credit_limit = tbv_credit_grant(path);
	path->reserved--;
	tbv_wire_encode(hdr, frame->data);
	if (path->stopping || path->tx->ops->post(path->tx, frame))
		give_back(path, frame);
	spin_unlock_bh(&path->lock);

	tbv_count(dev, TBV_TX_FRAMES);
	tbv_count_add(dev, TBV_TX_BYTES, hdr->payload_len);
	trace_tx_frame(dev->index, hdr->src_qpn, hdr->opcode, hdr->flags,
		       hdr->psn, hdr->path_seq, hdr->payload_len, path->id);
}

static void tx_done(struct tbv_ring *ring, struct tbv_frame *frame,
		    bool canceled)
{
	struct tbv_path *path = ring->owner;

	spin_lock_bh(&path->lock);
	give_back(path, frame);
	spin_unlock_bh(&path->lock);
}

/* Stop waiting; called with the QP locked. */
void tbv_path_forget(struct tbv_path *path, struct tbv_qp *qp)
{
	bool waited;

	spin_lock_bh(&path->lock);
	waited = qp->waiting;
	if (waited) {
		qp->waiting = false;
		list_del_init(&qp->wait_node);
	}
	spin_unlock_bh(&path->lock);
	if (waited)
		tbv_qp_put(qp);
}

static struct tbv_qp *next_waiter(struct tbv_path *path)
{
	struct tbv_qp *qp;

	qp = list_first_entry_or_null(&path->waiters, struct tbv_qp, wait_node);
	if (qp) {
		list_del_init(&qp->wait_node);
		qp->waiting = false;
	}
	path->serving = qp;
	return qp;
}

/* Everyone who waits now gets one turn; whoever wants more waits again. */
static void wake_work(struct work_struct *work)
{
	struct tbv_path *path = container_of(work, struct tbv_path, wake_work);
	struct tbv_qp *qp;
	size_t turns;

	tbv_credit_run(path);

	spin_lock_bh(&path->lock);
	turns = list_count_nodes(&path->waiters);
	while (turns--) {
		qp = next_waiter(path);
		if (!qp)
			break;
		spin_unlock_bh(&path->lock);

		spin_lock_bh(&qp->lock);
		if (tbv_reply_run(qp))
			tbv_req_run(qp);
		spin_unlock_bh(&qp->lock);
		tbv_qp_put(qp);

		spin_lock_bh(&path->lock);
	}
	path->serving = NULL;
	if (!list_empty(&path->waiters) && has_data_room(path))
		tbv_path_wake_locked(path);
	spin_unlock_bh(&path->lock);
}

static int alloc_frames(struct tbv_path *path)
{
	unsigned int count = path->tx->slots + path->rx->slots;
	unsigned int i;

	path->frames = kvcalloc(count, sizeof(*path->frames), GFP_KERNEL);
	if (!path->frames)
		return -ENOMEM;
	path->frame_count = count;
	for (i = 0; i < count; i++) {
		path->frames[i].data = (void *)__get_free_page(GFP_KERNEL);
		if (!path->frames[i].data)
			return -ENOMEM;
	}
	return 0;
}

static void free_frames(struct tbv_path *path)
{
	unsigned int i;

	for (i = 0; i < path->frame_count; i++)
		free_page((unsigned long)path->frames[i].data);
	kvfree(path->frames);
	path->frames = NULL;
	path->frame_count = 0;
}

/**
 * tbv_path_init - make a path ready to send and receive
 * @path: zeroed memory
 * @dev: the device it belongs to
 * @id: which of its paths
 * @tx: ring to send on, not used by anyone yet
 * @rx: ring to receive from, not used by anyone yet
 *
 * Return: 0 or -ENOMEM; then tbv_path_stop() cleans up as after success.
 */
int tbv_path_init(struct tbv_path *path, struct tbv_dev *dev,
		  enum tbv_path_id id, struct tbv_ring *tx,
		  struct tbv_ring *rx)
{
	unsigned int i;
	int err;

	path->dev = dev;
	path->id = id;
	path->tx = tx;
	path->rx = rx;
	spin_lock_init(&path->lock);
	INIT_LIST_HEAD(&path->free);
	INIT_LIST_HEAD(&path->waiters);
	INIT_WORK(&path->wake_work, wake_work);
	tbv_credit_init(path);

	err = alloc_frames(path);
	if (err)
		return err;
	for (i = 0; i < tx->slots; i++)
		list_add_tail(&path->frames[i].node, &path->free);
	path->free_count = tx->slots;

	tx->owner = path;
	tx->done = tx_done;
	rx->owner = path;
	rx->done = tbv_rx_done;
	for (; i < path->frame_count; i++) {
		err = rx->ops->post(rx, &path->frames[i]);
		if (err)
			return err;
	}
	return 0;
}

/* No QP uses the path any more. */
void tbv_path_stop(struct tbv_path *path)
{
	if (!path->dev)
		return;
	spin_lock_bh(&path->lock);
	path->stopping = true;
	spin_unlock_bh(&path->lock);
	path->tx->ops->stop(path->tx);
	path->rx->ops->stop(path->rx);
	timer_shutdown_sync(&path->stall_timer);
	cancel_work_sync(&path->wake_work);
	free_frames(path);
}
