// SPDX-License-Identifier: GPL-2.0
/*
 * Completion queues. produced and consumed are monotonic totals: their
 * difference is the occupancy, and full differs from empty at any capacity.
 * A full CQ loses completions, says so once by an event, and works on.
 */
#include <linux/log2.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include <rdma/restrack.h>

#include "tbv.h"
#include "trace.h"

int tbv_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		  struct uverbs_attr_bundle *attrs)
{
	struct tbv_dev *dev = to_tbv_dev(ibcq->device);
	struct tbv_cq *cq = to_tbv_cq(ibcq);
	unsigned long flags;
	u32 size;
	int err;

	if (attr->flags)
		return -EOPNOTSUPP;
	if (!attr->cqe || attr->cqe > TBV_MAX_CQE)
		return -EINVAL;

	err = tbv_object_get(&dev->n_cqs, TBV_MAX_CQ);
	if (err)
		return err;
	size = roundup_pow_of_two(attr->cqe);
	cq->ring = kvcalloc(size, sizeof(*cq->ring), GFP_KERNEL_ACCOUNT);
	if (!cq->ring) {
		atomic_dec(&dev->n_cqs);
		return -ENOMEM;
	}
	spin_lock_init(&cq->lock);
	cq->mask = size - 1;
	cq->cqe = attr->cqe;
	cq->cqn = atomic_inc_return(&dev->next_cqn);
	ibcq->cqe = attr->cqe;

	/* CQ events come with interrupts off, see docs/tracepoints.md. */
	local_irq_save(flags);
	trace_cq_create(dev->index, cq->cqn, task_tgid_nr(current), cq->cqe,
			false);
	local_irq_restore(flags);
	return 0;
}

/* No QP uses it any more, so nothing pushes. */
int tbv_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata)
{
	struct tbv_dev *dev = to_tbv_dev(ibcq->device);
	struct tbv_cq *cq = to_tbv_cq(ibcq);
	unsigned long flags;

	spin_lock_irqsave(&cq->lock, flags);
	trace_cq_destroy(dev->index, cq->cqn, cq->produced, cq->consumed);
	spin_unlock_irqrestore(&cq->lock, flags);
	kvfree(cq->ring);
	atomic_dec(&dev->n_cqs);
	return 0;
}

static bool fires(struct tbv_cq *cq, bool solicited)
{
	if (!cq->armed || (cq->armed_solicited && !solicited))
		return false;
	cq->armed = false;
	return true;
}

static bool overflow(struct tbv_cq *cq, const struct ib_wc *wc, u64 seq)
{
	struct tbv_dev *dev = to_tbv_dev(cq->base.device);

	cq->overflows++;
	tbv_count(dev, TBV_CQ_OVERFLOW_ERROR);
	trace_cq_overflow(dev->index, cq->cqn, wc->qp->qp_num, seq, wc->wr_id,
			  cq->produced, cq->consumed, cq->overflows);
	return cq->overflows == 1;
}

/**
 * tbv_cq_push - add a completion
 * @cq: the queue
 * @wc: the completion; its qp is a stub
 * @seq: number of the work request in its queue
 * @signalled: whether its success would have been reported
 * @solicited: whether it fires a solicited-only notification
 *
 * Called with the QP locked, which keeps the CQ alive.
 */
void tbv_cq_push(struct tbv_cq *cq, const struct ib_wc *wc, u64 seq,
		 bool signalled, bool solicited)
{
	struct tbv_dev *dev = to_tbv_dev(cq->base.device);
	struct ib_event event = {
		.device = cq->base.device,
		.event = IB_EVENT_CQ_ERR,
		.element.cq = &cq->base,
	};
	bool report = false, notify = false;
	unsigned long flags;

	spin_lock_irqsave(&cq->lock, flags);
	if (cq->produced - cq->consumed >= cq->cqe) {
		report = overflow(cq, wc, seq);
	} else {
		cq->ring[cq->produced & cq->mask] = *wc;
		cq->produced++;
		notify = fires(cq, solicited || wc->status != IB_WC_SUCCESS);
		trace_cq_push(dev->index, wc->qp->qp_num, seq, wc->wr_id,
			      wc->opcode, signalled, cq->cqn, wc->status,
			      wc->byte_len, cq->produced, cq->consumed);
	}
	spin_unlock_irqrestore(&cq->lock, flags);

	if (notify && cq->base.comp_handler)
		cq->base.comp_handler(&cq->base, cq->base.cq_context);
	if (report && cq->base.event_handler)
		cq->base.event_handler(&event, cq->base.cq_context);
}

/*
 * Take the completions of one QP out. The others move towards the newest end
 * and keep their order, so that consumed only ever grows.
 */
void tbv_cq_purge(struct tbv_cq *cq, struct tbv_qp_stub *stub)
{
	struct ib_wc *ring = cq->ring;
	unsigned long flags;
	u64 from, to;

	spin_lock_irqsave(&cq->lock, flags);
	to = cq->produced;
	for (from = cq->produced; from != cq->consumed; from--) {
		if (ring[(from - 1) & cq->mask].qp == &stub->qp)
			continue;
		to--;
		if (to != from - 1)
			ring[to & cq->mask] = ring[(from - 1) & cq->mask];
	}
	cq->consumed = to;
	spin_unlock_irqrestore(&cq->lock, flags);
}

int tbv_poll_cq(struct ib_cq *ibcq, int num_entries, struct ib_wc *wc)
{
	struct tbv_dev *dev = to_tbv_dev(ibcq->device);
	struct tbv_cq *cq = to_tbv_cq(ibcq);
	unsigned long flags;
	int n;

	spin_lock_irqsave(&cq->lock, flags);
	for (n = 0; n < num_entries && cq->consumed != cq->produced; n++)
		wc[n] = cq->ring[cq->consumed++ & cq->mask];
	trace_cq_poll(dev->index, cq->cqn, num_entries, n, cq->produced,
		      cq->consumed);
	spin_unlock_irqrestore(&cq->lock, flags);
	return n;
}

int tbv_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags notify)
{
	struct tbv_dev *dev = to_tbv_dev(ibcq->device);
	bool solicited = (notify & IB_CQ_SOLICITED_MASK) == IB_CQ_SOLICITED;
	struct tbv_cq *cq = to_tbv_cq(ibcq);
	unsigned long flags;
	bool missed;

	spin_lock_irqsave(&cq->lock, flags);
	/* A stronger request already made is not weakened. */
	cq->armed_solicited = solicited && (!cq->armed || cq->armed_solicited);
	cq->armed = true;
	missed = cq->produced != cq->consumed;
	trace_cq_arm(dev->index, cq->cqn, solicited, missed, cq->produced,
		     cq->consumed);
	spin_unlock_irqrestore(&cq->lock, flags);
	return missed && (notify & IB_CQ_REPORT_MISSED_EVENTS);
}

/* The number tracepoints use, for tools that attach to a running system. */
int tbv_fill_res_cq_entry(struct sk_buff *msg, struct ib_cq *ibcq)
{
	struct nlattr *table;

	table = nla_nest_start(msg, RDMA_NLDEV_ATTR_DRIVER);
	if (!table)
		return -EMSGSIZE;
	if (rdma_nl_put_driver_u32(msg, "cqn", to_tbv_cq(ibcq)->cqn)) {
		nla_nest_cancel(msg, table);
		return -EMSGSIZE;
	}
	nla_nest_end(msg, table);
	return 0;
}
