// SPDX-License-Identifier: GPL-2.0
/*
 * Loop transport: moves frames from a transmit ring to a receive ring of the
 * same kernel. It runs as softirq work queued by the poster: as soon as the
 * poster lets go of its locks, the frame is delivered in its context.
 */
#include <linux/ktime.h>
#include <linux/string.h>

#include "loop.h"
#include "tbv.h"

/* Frames moved before others get their turn. */
#define LOOP_BUDGET 64

static struct tbv_loop_ring *to_loop_ring(struct tbv_ring *ring)
{
	return container_of(ring, struct tbv_loop_ring, ring);
}

static struct tbv_frame *take_first(struct tbv_loop_ring *ring)
{
	struct tbv_frame *frame;

	frame = list_first_entry_or_null(&ring->posted, struct tbv_frame, node);
	if (frame) {
		list_del_init(&frame->node);
		ring->count--;
	}
	return frame;
}

/* The next frame to move, or NULL when there is none or none is due. */
static struct tbv_frame *take_tx(struct tbv_loop_dir *dir,
				 enum tbv_fault_kind *kind)
{
	struct tbv_frame *frame, *next;
	u64 now;

	lockdep_assert_held(&dir->lock);
	frame = list_first_entry_or_null(&dir->tx.posted, struct tbv_frame,
					 node);
	if (!frame || dir->stopped)
		return NULL;
	if (frame->ring_data) {
		now = ktime_get_ns();
		if (now < frame->ring_data) {
			hrtimer_start(&dir->timer,
				      ns_to_ktime(frame->ring_data - now),
				      HRTIMER_MODE_REL_SOFT);
			return NULL;
		}
	}
	*kind = tbv_fault_next(&dir->fault);
	if (*kind == TBV_FAULT_REORDER && dir->tx.count > 1) {
		next = list_next_entry(frame, node);
		list_move(&next->node, &dir->tx.posted);
	}
	return take_first(&dir->tx);
}

/* A frame without a descriptor waiting for it is lost, as on the wire. */
static void deliver(struct tbv_loop_dir *dir, const struct tbv_frame *tx,
		    bool corrupt)
{
	struct tbv_ring *ring = &dir->rx.ring;
	struct tbv_frame *rx;

	spin_lock_bh(&dir->lock);
	rx = take_first(&dir->rx);
	spin_unlock_bh(&dir->lock);
	if (!rx)
		return;

	memcpy(rx->data, tx->data, tx->size);
	rx->size = tx->size;
	rx->sof = tx->sof;
	rx->eof = tx->eof;
	rx->flags = 0;
	if (corrupt) {
		((u8 *)rx->data)[tx->size / 2] ^= 0x10;
		rx->flags = TBV_RING_F_CRC_ERROR;
	}
	ring->done(ring, rx, false);
}

static void loop_work(struct work_struct *work)
{
	struct tbv_loop_dir *dir = container_of(work, struct tbv_loop_dir,
						work);
	struct tbv_ring *ring = &dir->tx.ring;
	enum tbv_fault_kind kind;
	struct tbv_frame *frame;
	int budget = LOOP_BUDGET;

	while (budget--) {
		spin_lock_bh(&dir->lock);
		frame = take_tx(dir, &kind);
		spin_unlock_bh(&dir->lock);
		if (!frame)
			return;

		if (kind != TBV_FAULT_DROP)
			deliver(dir, frame, kind == TBV_FAULT_CORRUPT);
		if (kind == TBV_FAULT_DUPLICATE)
			deliver(dir, frame, false);
		ring->done(ring, frame, false);
	}
	queue_work(tbv_bh_wq, &dir->work);
}

static enum hrtimer_restart loop_timer(struct hrtimer *timer)
{
	struct tbv_loop_dir *dir = container_of(timer, struct tbv_loop_dir,
						timer);

	queue_work(tbv_bh_wq, &dir->work);
	return HRTIMER_NORESTART;
}

static int loop_post(struct tbv_ring *ring, struct tbv_frame *frame)
{
	struct tbv_loop_ring *lring = to_loop_ring(ring);
	struct tbv_loop_dir *dir = lring->dir;
	bool is_tx = lring == &dir->tx;
	u64 delay = READ_ONCE(dir->fault.delay_ns);
	int err = 0;

	spin_lock_bh(&dir->lock);
	if (dir->stopped) {
		err = -ESHUTDOWN;
	} else if (lring->count == ring->slots) {
		err = -ENOSPC;
	} else {
		frame->ring_data = is_tx && delay ? ktime_get_ns() + delay : 0;
		list_add_tail(&frame->node, &lring->posted);
		lring->count++;
		if (is_tx)
			queue_work(tbv_bh_wq, &dir->work);
	}
	spin_unlock_bh(&dir->lock);
	return err;
}

static void loop_stop(struct tbv_ring *ring)
{
	struct tbv_loop_ring *lring = to_loop_ring(ring);
	struct tbv_loop_dir *dir = lring->dir;
	struct tbv_frame *frame;

	spin_lock_bh(&dir->lock);
	dir->stopped = true;
	spin_unlock_bh(&dir->lock);
	hrtimer_cancel(&dir->timer);
	cancel_work_sync(&dir->work);

	for (;;) {
		spin_lock_bh(&dir->lock);
		frame = take_first(lring);
		spin_unlock_bh(&dir->lock);
		if (!frame)
			break;
		ring->done(ring, frame, true);
	}
}

static const struct tbv_ring_ops loop_ring_ops = {
	.post = loop_post,
	.stop = loop_stop,
};

static void init_end(struct tbv_loop_ring *lring, struct tbv_loop_dir *dir)
{
	lring->ring.ops = &loop_ring_ops;
	lring->ring.slots = TBV_RING_SLOTS;
	lring->dir = dir;
	INIT_LIST_HEAD(&lring->posted);
}

void tbv_loop_init(struct tbv_loop_dir *dir)
{
	init_end(&dir->tx, dir);
	init_end(&dir->rx, dir);
	spin_lock_init(&dir->lock);
	INIT_WORK(&dir->work, loop_work);
	tbv_hrtimer_setup(&dir->timer, loop_timer);
}
