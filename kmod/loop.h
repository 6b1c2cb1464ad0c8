/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One direction of a virtual cable: a transmit ring at one end, a receive ring
 * at the other. A device's path to itself is one with both ends the same.
 */
#ifndef TBV_LOOP_H
#define TBV_LOOP_H

#include <linux/hrtimer.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "fault.h"
#include "ring.h"

/**
 * struct tbv_loop_ring - one end
 * @ring: what the upper half sees
 * @dir: the direction it belongs to
 * @posted: frames, in the order they were posted
 * @count: of @posted
 */
struct tbv_loop_ring {
	struct tbv_ring ring;
	struct tbv_loop_dir *dir;
	struct list_head posted;
	unsigned int count;
};

/**
 * struct tbv_loop_dir - one direction
 * @tx: the sending end
 * @rx: the receiving end
 * @lock: both queues, @stopped
 * @stopped: no frame is taken any more
 * @work: moves frames, in softirq context
 * @timer: for delayed frames
 * @fault: what goes wrong on purpose
 */
struct tbv_loop_dir {
	struct tbv_loop_ring tx;
	struct tbv_loop_ring rx;
	spinlock_t lock; /* see above */
	bool stopped;
	struct work_struct work;
	struct hrtimer timer;
	struct tbv_fault fault;
};

void tbv_loop_init(struct tbv_loop_dir *dir);

#endif /* TBV_LOOP_H */
