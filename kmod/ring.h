/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Ring interface: what the upper half knows of a transport.
 *
 * Its shape is that of a Thunderbolt ring. A ring has a fixed number of
 * descriptors, each pointing to one frame of at most 4096 bytes. Frames are
 * posted and completed in order. In frame mode the hardware marks a frame with
 * a start and an end code, writes the received length, and reports checksum
 * and overrun errors as flags. A received frame without a posted descriptor is
 * lost: there is no flow control below this interface.
 *
 * Who owns a frame: the upper half from allocation to post() and again from
 * done() on; the ring in between.
 */
#ifndef TBV_RING_H
#define TBV_RING_H

#include <linux/list.h>
#include <linux/types.h>

/* Start and end codes this protocol puts on its frames (4 bits each). */
#define TBV_RING_SOF		4
#define TBV_RING_EOF		5

/* Completion flags of a received frame. */
#define TBV_RING_F_CRC_ERROR	BIT(0)
#define TBV_RING_F_OVERRUN	BIT(1)
#define TBV_RING_F_ERROR	(TBV_RING_F_CRC_ERROR | TBV_RING_F_OVERRUN)

/**
 * struct tbv_frame - one descriptor's worth of data
 * @node: for whoever owns the frame
 * @data: buffer of TBV_FRAME_SIZE bytes
 * @size: bytes to send, or bytes received
 * @sof: start code
 * @eof: end code
 * @flags: TBV_RING_F_*, valid at completion of a receive
 * @ring_data: for the ring alone, while it owns the frame
 */
struct tbv_frame {
	struct list_head node;
	void *data;
	u16 size;
	u8 sof;
	u8 eof;
	u32 flags;
	u64 ring_data;
};

struct tbv_ring;

/**
 * struct tbv_ring_ops - a transport
 * @post: give a frame to the ring; never sleeps, never calls done() from
 *	within; refuses with -ESHUTDOWN once stopped, -ENOSPC when all
 *	descriptors are in use
 * @stop: may sleep; on return every frame has been completed, those that were
 *	still posted as canceled, and done() is not running
 */
struct tbv_ring_ops {
	int (*post)(struct tbv_ring *ring, struct tbv_frame *frame);
	void (*stop)(struct tbv_ring *ring);
};

/**
 * struct tbv_ring - one direction of a link, seen from one end
 * @ops: the transport
 * @slots: number of descriptors
 * @done: a frame is finished; called in order, in softirq context, one at a
 *	time per ring and without locks, except for canceled frames, which come
 *	from stop()
 * @owner: for @done
 */
struct tbv_ring {
	const struct tbv_ring_ops *ops;
	unsigned int slots;
	void (*done)(struct tbv_ring *ring, struct tbv_frame *frame,
		     bool canceled);
	void *owner;
};

#endif /* TBV_RING_H */
