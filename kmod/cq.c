// SPDX-License-Identifier: GPL-2.0
/*
 * Completion queues. produced and consumed are monotonic totals: their
 * difference is the occupancy, and full differs from empty at any capacity.
 * A full CQ loses completions, says so by an event and to each of its
 * consumers, and works on.
 *
 * cq->wc holds what the ring says there is, for who polls by system call. The
 * published ring holds the same for the process; nothing is read back from it.
 */
#include <linux/log2.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include <rdma/restrack.h>

#include "double.h"
#include "tbv.h"
#include "trace.h"

/*
 * How often to try again when other consumers are faster. Bounded, because a
 * process may write to its page what it likes.
 */
#define TBV_CQ_TAKE_TRIES	16

static u64 total(const struct tbv_cq *cq, u64 number)
{
	return number - cq->ring.first;
}

/*
 * Publish the ring if the caller has room for the answer. All of it or nothing:
 * without it the process polls by system call.
 */
static int publish(struct tbv_cq *cq, struct ib_udata *udata)
{
	struct usb4_rdma_create_cq_resp resp = {};
	struct tbv_ucontext *ctx =
		rdma_udata_to_drv_context(udata, struct tbv_ucontext, base);
	struct tbv_mmap_entry *ring_map, *consumer_map;
	struct tbv_cq_shm *shm;

	if (!ctx || udata->outlen < sizeof(resp) ||
	    tbv_double_is(TBV_DOUBLE_OLD))
		return 0;
	ring_map = tbv_mmap_create(&ctx->base, tbv_cq_ring_bytes(&cq->ring),
				   false);
	consumer_map = tbv_mmap_create(&ctx->base, PAGE_SIZE, true);
	if (!ring_map || !consumer_map) {
		tbv_mmap_remove(ring_map);
		tbv_mmap_remove(consumer_map);
		return 0;
	}
	shm = ring_map->memory;
	shm->device_index = to_tbv_dev(cq->base.device)->index;
	shm->cqn = cq->cqn;
	tbv_cq_ring_publish(&cq->ring, shm, consumer_map->memory);
	cq->ring_map = ring_map;
	cq->consumer_map = consumer_map;

	resp.ring_offset = rdma_user_mmap_get_offset(&ring_map->base);
	resp.consumer_offset = rdma_user_mmap_get_offset(&consumer_map->base);
	resp.ring_len = PAGE_ALIGN(tbv_cq_ring_bytes(&cq->ring));
	resp.cqe = cq->ring.cqe;
	resp.shm_abi = TBV_CQ_SHM_ABI;
	tbv_double_reply(&resp);
	return ib_copy_to_udata(udata, &resp, sizeof(resp));
}

static void free_cq(struct tbv_cq *cq)
{
	tbv_mmap_remove(cq->ring_map);
	tbv_mmap_remove(cq->consumer_map);
	kvfree(cq->wc);
	atomic_dec(&to_tbv_dev(cq->base.device)->n_cqs);
}

int tbv_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		  struct uverbs_attr_bundle *attrs)
{
	struct tbv_dev *dev = to_tbv_dev(ibcq->device);
	struct tbv_cq *cq = to_tbv_cq(ibcq);
	unsigned long flags;
	int err;

	if (attr->flags)
		return -EOPNOTSUPP;
	if (!attr->cqe || attr->cqe > TBV_MAX_CQE)
		return -EINVAL;

	err = tbv_object_get(&dev->n_cqs, TBV_MAX_CQ);
	if (err)
		return err;
	spin_lock_init(&cq->lock);
	cq->cqn = atomic_inc_return(&dev->next_cqn);
	tbv_cq_ring_init(&cq->ring, attr->cqe, READ_ONCE(dev->cq_first));
	cq->wc = kvcalloc((size_t)cq->ring.mask + 1, sizeof(*cq->wc),
			  GFP_KERNEL_ACCOUNT);
	if (!cq->wc)
		err = -ENOMEM;
	else if (attrs)
		err = publish(cq, &attrs->driver_udata);
	if (err) {
		free_cq(cq);
		return err;
	}
	ibcq->cqe = attr->cqe;

	/* CQ events come with interrupts off, see docs/tracepoints.md. */
	local_irq_save(flags);
	trace_cq_create(dev->index, cq->cqn, task_tgid_nr(current), attr->cqe,
			!!cq->ring_map);
	local_irq_restore(flags);
	return 0;
}

/* No QP uses it any more, so nothing pushes. */
int tbv_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata)
{
	struct tbv_dev *dev = to_tbv_dev(ibcq->device);
	struct tbv_cq *cq = to_tbv_cq(ibcq);
	unsigned long flags;
	u64 consumed;

	spin_lock_irqsave(&cq->lock, flags);
	tbv_cq_ring_die(&cq->ring);
	consumed = tbv_cq_ring_consumed(&cq->ring);
	trace_cq_destroy(dev->index, cq->cqn, total(cq, cq->ring.produced),
			 total(cq, consumed));
	spin_unlock_irqrestore(&cq->lock, flags);
	free_cq(cq);
	return 0;
}

static bool fires(struct tbv_cq *cq, bool solicited)
{
	if (!cq->armed || (cq->armed_solicited && !solicited))
		return false;
	cq->armed = false;
	return !tbv_double_forgets();
}

/* A completion as the process reads it. */
static struct ib_uverbs_wc to_uverbs(const struct ib_wc *wc)
{
	return (struct ib_uverbs_wc) {
		.wr_id = wc->wr_id,
		.status = wc->status,
		.opcode = wc->opcode,
		.vendor_err = wc->vendor_err,
		.byte_len = wc->byte_len,
		.ex.imm_data = wc->ex.imm_data,
		.qp_num = wc->qp->qp_num,
		.src_qp = wc->src_qp,
		.wc_flags = wc->wc_flags,
		.pkey_index = wc->pkey_index,
		.slid = wc->slid,
		.sl = wc->sl,
		.dlid_path_bits = wc->dlid_path_bits,
		.port_num = wc->port_num,
	};
}

static bool overflow(struct tbv_cq *cq, const struct ib_wc *wc, u64 seq,
		     bool signalled)
{
	struct tbv_dev *dev = to_tbv_dev(cq->base.device);

	tbv_cq_ring_overflow(&cq->ring);
	tbv_count(dev, TBV_CQ_OVERFLOW_ERROR);
	trace_cq_overflow(dev->index, cq->cqn, wc->qp->qp_num, seq, wc->wr_id,
			  total(cq, cq->ring.produced),
			  total(cq, cq->ring.consumed), cq->ring.overflows,
			  wc->opcode, signalled);
	return cq->ring.overflows == 1;
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
	struct ib_uverbs_wc entry = to_uverbs(wc);
	struct ib_event event = {
		.device = cq->base.device,
		.event = IB_EVENT_CQ_ERR,
		.element.cq = &cq->base,
	};
	bool report = false, notify = false;
	unsigned long flags;

	spin_lock_irqsave(&cq->lock, flags);
	if (tbv_cq_ring_full(&cq->ring)) {
		report = overflow(cq, wc, seq, signalled);
	} else {
		/* Told before it can be taken: the process asks nobody. */
		trace_cq_push(dev->index, wc->qp->qp_num, seq, wc->wr_id,
			      wc->opcode, signalled, cq->cqn, wc->status,
			      wc->byte_len, total(cq, cq->ring.produced + 1),
			      total(cq, cq->ring.consumed), cq->ring.first);
		cq->wc[cq->ring.produced & cq->ring.mask] = *wc;
		tbv_cq_ring_push(&cq->ring, &entry);
		notify = fires(cq, solicited || wc->status != IB_WC_SUCCESS);
	}
	spin_unlock_irqrestore(&cq->lock, flags);

	if (notify && cq->base.comp_handler)
		cq->base.comp_handler(&cq->base, cq->base.cq_context);
	if (report && cq->base.event_handler)
		cq->base.event_handler(&event, cq->base.cq_context);
}

/* Become the owner of all that is in; @from is where it begins. */
static bool take_all(struct tbv_cq_ring *ring, u64 *from)
{
	int tries;

	for (tries = 0; tries < TBV_CQ_TAKE_TRIES; tries++) {
		*from = tbv_cq_ring_consumed(ring);
		if (tbv_cq_ring_take(ring, *from, ring->produced))
			return true;
	}
	return false;
}

static bool holds_any_of(struct tbv_cq *cq, struct tbv_qp_stub *stub)
{
	u64 i;

	for (i = tbv_cq_ring_consumed(&cq->ring); i != cq->ring.produced; i++)
		if (cq->wc[i & cq->ring.mask].qp == &stub->qp)
			return true;
	return false;
}

/*
 * Take the completions of one QP out. Others may be polling: so all are taken
 * out, and those of other QPs are put in again, in order. A slot that is
 * written is never one that is still to be read, because the ring holds them
 * all. The totals that are told do not count what is put in again.
 */
void tbv_cq_purge(struct tbv_cq *cq, struct tbv_qp_stub *stub)
{
	struct tbv_dev *dev = to_tbv_dev(cq->base.device);
	struct tbv_cq_ring *ring = &cq->ring;
	u64 i, from, to, purged = 0;
	struct ib_uverbs_wc entry;
	unsigned long flags;
	bool notify = false;
	struct ib_wc *wc;

	/* When the device goes, the completions stay for who maps the queue. */
	if (READ_ONCE(dev->leaving))
		return;

	spin_lock_irqsave(&cq->lock, flags);
	to = ring->produced;
	if (!holds_any_of(cq, stub) || !take_all(ring, &from))
		goto unlock;
	for (i = from; i != to; i++) {
		wc = &cq->wc[i & ring->mask];
		if (wc->qp == &stub->qp) {
			purged++;
			continue;
		}
		entry = to_uverbs(wc);
		cq->wc[ring->produced & ring->mask] = *wc;
		tbv_cq_ring_push(ring, &entry);
		ring->first++;
	}
	/* Meanwhile somebody may have armed, seen nothing and gone to sleep. */
	if (ring->produced != to)
		notify = fires(cq, true);
	if (purged)
		trace_cq_purge(dev->index, cq->cqn, stub->qp.qp_num, purged,
			       total(cq, ring->produced),
			       total(cq, ring->consumed), ring->first);
unlock:
	spin_unlock_irqrestore(&cq->lock, flags);
	if (notify && cq->base.comp_handler)
		cq->base.comp_handler(&cq->base, cq->base.cq_context);
}

/* Copy what is there, and make it ours unless another consumer was faster. */
static bool try_poll(struct tbv_cq *cq, int num_entries, struct ib_wc *wc,
		     int *taken)
{
	struct tbv_cq_ring *ring = &cq->ring;
	u64 from = tbv_cq_ring_consumed(ring);
	int n;

	for (n = 0; n < num_entries && from + n != ring->produced; n++)
		wc[n] = cq->wc[(from + n) & ring->mask];
	if (n && !tbv_cq_ring_take(ring, from, from + n))
		return false;
	*taken = n;
	return true;
}

/*
 * Whether to say now that completions were lost. Who waits for them would wait
 * for ever; but an error makes uverbs forget what this call has taken before.
 * So it is told to a task that has found the queue empty twice in a row.
 */
static bool tells_overflow(struct tbv_cq *cq, int taken)
{
	bool again = cq->empty_for == current;

	cq->empty_for = NULL;
	if (taken || cq->overflows_told == cq->ring.overflows)
		return false;
	if (!again) {
		cq->empty_for = current;
		return false;
	}
	cq->overflows_told = cq->ring.overflows;
	return true;
}

int tbv_poll_cq(struct ib_cq *ibcq, int num_entries, struct ib_wc *wc)
{
	struct tbv_dev *dev = to_tbv_dev(ibcq->device);
	struct tbv_cq *cq = to_tbv_cq(ibcq);
	unsigned long flags;
	int tries, n = 0;

	spin_lock_irqsave(&cq->lock, flags);
	for (tries = 0; tries < TBV_CQ_TAKE_TRIES; tries++)
		if (try_poll(cq, num_entries, wc, &n))
			break;
	trace_cq_poll(dev->index, cq->cqn, num_entries, n,
		      total(cq, cq->ring.produced),
		      total(cq, cq->ring.consumed), cq->ring.first);
	if (tells_overflow(cq, n))
		n = -EOVERFLOW;
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
	missed = cq->ring.produced != tbv_cq_ring_consumed(&cq->ring);
	trace_cq_arm(dev->index, cq->cqn, solicited, missed,
		     total(cq, cq->ring.produced),
		     total(cq, cq->ring.consumed));
	spin_unlock_irqrestore(&cq->lock, flags);
	return missed && (notify & IB_CQ_REPORT_MISSED_EVENTS);
}

/*
 * What tracepoints told of the queue, for tools that attach to a running
 * system. Consumers are as far as its last event said: their page is not looked
 * at, since some kernels still list a queue whose memory is gone.
 */
int tbv_fill_res_cq_entry(struct sk_buff *msg, struct ib_cq *ibcq)
{
	struct tbv_cq *cq = to_tbv_cq(ibcq);
	u64 produced, consumed;
	struct nlattr *table;
	unsigned long flags;

	spin_lock_irqsave(&cq->lock, flags);
	produced = total(cq, cq->ring.produced);
	consumed = total(cq, cq->ring.consumed);
	spin_unlock_irqrestore(&cq->lock, flags);

	table = nla_nest_start(msg, RDMA_NLDEV_ATTR_DRIVER);
	if (!table)
		return -EMSGSIZE;
	if (rdma_nl_put_driver_u32(msg, "cqn", cq->cqn) ||
	    rdma_nl_put_driver_u32(msg, "mapped", !!cq->ring_map) ||
	    rdma_nl_put_driver_u64(msg, "produced", produced) ||
	    rdma_nl_put_driver_u64(msg, "consumed", consumed)) {
		nla_nest_cancel(msg, table);
		return -EMSGSIZE;
	}
	nla_nest_end(msg, table);
	return 0;
}
