// SPDX-License-Identifier: GPL-2.0
/*
 * Credits: a frame that finds no receive descriptor is lost, so a sender must
 * know how many the receiver has.
 *
 * Every frame on a path has a number, path_seq. The receiver answers with
 * credit_limit, the first number it has no descriptor for: one past the
 * highest number seen, plus its descriptors. The limit rides on every frame
 * that goes back; when none does, a CREDIT frame carries it. A lost frame needs
 * no repair: the next one that arrives moves the limit past it. When the last
 * ones of a window are all lost, the sender asks with CREDIT_REQ.
 */
#include "tbv.h"

/* Descriptors not promised: room for what faults duplicate or reorder. */
#define CREDIT_SLACK	8
#define CREDIT_WINDOW	(TBV_RING_SLOTS - CREDIT_SLACK)

static s32 limit_left(const struct tbv_path *path)
{
	return path->tx_limit - path->tx_seq - path->reserved;
}

/* Data frames the peer can still take. */
u32 tbv_credit_left(const struct tbv_path *path)
{
	return max(limit_left(path) - TBV_CONTROL_RESERVE, 0);
}

/* Whether it can take one more control frame. */
bool tbv_credit_control(const struct tbv_path *path)
{
	return limit_left(path) > 0;
}

/* The limit for the frame about to be sent. */
u32 tbv_credit_grant(struct tbv_path *path)
{
	lockdep_assert_held(&path->lock);
	path->rx_limit = path->rx_seq + CREDIT_WINDOW;
	return path->rx_limit;
}

/* A frame brought a limit; believe it only as far as rings can be deep. */
void tbv_credit_received(struct tbv_path *path, u32 limit)
{
	spin_lock_bh(&path->lock);
	if ((s32)(limit - path->tx_limit) > 0 &&
	    (s32)(limit - path->tx_seq) <= TBV_RING_SLOTS) {
		path->tx_limit = limit;
		tbv_path_wake_locked(path);
	}
	spin_unlock_bh(&path->lock);
}

/* The descriptor of frame @path_seq is posted again. */
void tbv_credit_reposted(struct tbv_path *path, u32 path_seq)
{
	u32 limit;

	spin_lock_bh(&path->lock);
	if ((s32)(path_seq + 1 - path->rx_seq) > 0)
		path->rx_seq = path_seq + 1;
	limit = path->rx_seq + CREDIT_WINDOW;
	if ((s32)(limit - path->rx_limit) >= CREDIT_WINDOW / 4) {
		path->credit_wanted = true;
		tbv_path_wake_locked(path);
	}
	spin_unlock_bh(&path->lock);
}

/* The peer asked. */
void tbv_credit_wanted(struct tbv_path *path)
{
	spin_lock_bh(&path->lock);
	path->credit_wanted = true;
	tbv_path_wake_locked(path);
	spin_unlock_bh(&path->lock);
}

static void send_credit(struct tbv_path *path, u8 opcode,
			enum tbv_frame_class class)
{
	struct tbv_wire_hdr hdr = { .opcode = opcode };
	struct tbv_frame *frame;

	frame = tbv_path_get(path, NULL, class);
	if (frame)
		tbv_path_send(path, frame, &hdr);
}

/*
 * Send the limit if someone needs it. It goes out as a probe: the peer may be
 * out of credits itself, waiting for just this.
 */
void tbv_credit_run(struct tbv_path *path)
{
	bool wanted;

	spin_lock_bh(&path->lock);
	wanted = path->credit_wanted;
	path->credit_wanted = false;
	spin_unlock_bh(&path->lock);
	if (wanted)
		send_credit(path, TBV_WIRE_CREDIT, TBV_FRAME_PROBE);
}

/* Someone has waited for long: ask the peer, in case its answer was lost. */
static void stall(struct timer_list *timer)
{
	struct tbv_path *path = timer_container_of(path, timer, stall_timer);
	bool ask;

	spin_lock_bh(&path->lock);
	ask = !list_empty(&path->waiters) && !path->stopping;
	if (ask) {
		mod_timer(&path->stall_timer, jiffies + TBV_STALL_JIFFIES);
		tbv_path_wake_locked(path);
	}
	spin_unlock_bh(&path->lock);
	if (ask)
		send_credit(path, TBV_WIRE_CREDIT_REQ, TBV_FRAME_PROBE);
}

void tbv_credit_init(struct tbv_path *path)
{
	path->tx_limit = CREDIT_WINDOW;
	path->rx_limit = CREDIT_WINDOW;
	timer_setup(&path->stall_timer, stall, 0);
}
