/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Counters of one device. Names ending in _error stay zero in a healthy run.
 */
#ifndef TBV_COUNTERS_H
#define TBV_COUNTERS_H

#include <linux/percpu.h>
#include <linux/types.h>

enum tbv_counter {
	/* send side */
	TBV_TX_FRAMES,		/* frames given to a ring */
	TBV_TX_BYTES,		/* payload bytes copied into frames */
	TBV_TX_REPLIES,		/* acknowledgements, RNRs and NAKs sent */
	TBV_TX_RETRANSMITS,	/* times sending went back to an older PSN */
	TBV_TX_TIMEOUTS,	/* of those, because no answer came */
	TBV_TX_STALLS,		/* times a QP waited for credit or a slot */
	/* receive side */
	TBV_RX_FRAMES,		/* frames taken from a ring */
	TBV_RX_BYTES,		/* payload bytes copied into receive buffers */
	TBV_RX_REPLIES,		/* acknowledgements, RNRs and NAKs received */
	TBV_RX_DUPLICATES,	/* requests that had arrived before */
	TBV_RX_GAPS,		/* requests ahead of a missing one */
	TBV_RX_RNR,		/* requests that found no receive posted */
	TBV_RX_STALE,		/* frames for a QP that is not there or ready */
	TBV_RX_RING_ERROR,	/* checksum or overrun reported by the ring */
	TBV_RX_FORMAT_ERROR,	/* frames the decoder refused */
	TBV_RX_REPLY_ERROR,	/* replies about a PSN never sent */
	/* work requests */
	TBV_WR_SEND,		/* accepted by post_send */
	TBV_WR_RECV,		/* accepted by post_recv */
	TBV_WR_SUCCESS,		/* finished well, signalled or not */
	TBV_WR_FLUSHED,		/* flushed because the QP left its state */
	TBV_WR_ERROR,		/* failed for a reason of their own */
	TBV_CQ_OVERFLOW_ERROR,	/* completions lost to a full CQ */
	TBV_N_COUNTERS
};

struct tbv_counters {
	u64 value[TBV_N_COUNTERS];
};

extern const char *const tbv_counter_name[TBV_N_COUNTERS];

u64 tbv_counter_read(struct tbv_counters __percpu *counters,
		     enum tbv_counter counter);

#define tbv_count_add(dev, counter, n)					\
	this_cpu_add((dev)->counters->value[counter], n)
#define tbv_count(dev, counter) tbv_count_add(dev, counter, 1)

#endif /* TBV_COUNTERS_H */
