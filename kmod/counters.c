// SPDX-License-Identifier: GPL-2.0
/* Counters: names and sums. debugfs and the RDMA statistics both show them. */
#include <linux/build_bug.h>
#include <linux/cpumask.h>

#include "tbv.h"

const char *const tbv_counter_name[TBV_N_COUNTERS] = {
	[TBV_TX_FRAMES]		= "data_tx_frames",
	[TBV_TX_BYTES]		= "data_tx_bytes",
	[TBV_TX_REPLIES]	= "data_tx_replies",
	[TBV_TX_RETRANSMITS]	= "data_tx_retransmits",
	[TBV_TX_TIMEOUTS]	= "data_tx_timeouts",
	[TBV_TX_STALLS]		= "data_tx_stalls",
	[TBV_RX_FRAMES]		= "data_rx_frames",
	[TBV_RX_BYTES]		= "data_rx_bytes",
	[TBV_RX_REPLIES]	= "data_rx_replies",
	[TBV_RX_DUPLICATES]	= "data_rx_duplicates",
	[TBV_RX_GAPS]		= "data_rx_gaps",
	[TBV_RX_RNR]		= "data_rx_rnr",
	[TBV_RX_STALE]		= "data_rx_stale",
	[TBV_RX_RING_ERROR]	= "data_rx_ring_error",
	[TBV_RX_FORMAT_ERROR]	= "data_rx_format_error",
	[TBV_RX_REPLY_ERROR]	= "data_rx_reply_error",
	[TBV_WR_SEND]		= "data_wr_send",
	[TBV_WR_RECV]		= "data_wr_recv",
	[TBV_WR_SUCCESS]	= "data_wr_success",
	[TBV_WR_FLUSHED]	= "data_wr_flushed",
	[TBV_WR_ERROR]		= "data_wr_error",
	[TBV_CQ_OVERFLOW_ERROR]	= "data_wr_cq_overflow_error",
};

u64 tbv_counter_read(struct tbv_counters __percpu *counters,
		     enum tbv_counter counter)
{
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu_ptr(counters, cpu)->value[counter]);
	return sum;
}

static struct rdma_stat_desc stat_descs[TBV_N_COUNTERS];

struct rdma_hw_stats *tbv_alloc_hw_port_stats(struct ib_device *ibdev,
					      u32 port)
{
	int i;

	for (i = 0; i < TBV_N_COUNTERS; i++)
		stat_descs[i].name = tbv_counter_name[i];
	return rdma_alloc_hw_stats_struct(stat_descs, TBV_N_COUNTERS,
					  RDMA_HW_STATS_DEFAULT_LIFESPAN);
}

int tbv_get_hw_stats(struct ib_device *ibdev, struct rdma_hw_stats *stats,
		     u32 port, int index)
{
	struct tbv_dev *dev = to_tbv_dev(ibdev);
	int i;

	if (!port || !stats)
		return -EINVAL;
	for (i = 0; i < TBV_N_COUNTERS; i++)
		stats->value[i] = tbv_counter_read(dev->counters, i);
	return TBV_N_COUNTERS;
}
