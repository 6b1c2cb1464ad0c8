// SPDX-License-Identifier: GPL-2.0
/* QP life: creation, look-up by number, destruction. */
#include <linux/log2.h>
#include <linux/slab.h>

#include "tbv.h"
#include "trace.h"

/* Released stubs that rest before one is used again. */
#define TBV_STUBS_RESTING 64

static struct tbv_qp_stub *get_stub(struct tbv_dev *dev)
{
	struct tbv_qp_stub *stub = NULL;

	spin_lock_bh(&dev->stub_lock);
	if (dev->stub_count > TBV_STUBS_RESTING) {
		stub = list_first_entry(&dev->stubs, struct tbv_qp_stub, node);
		list_del(&stub->node);
		dev->stub_count--;
	}
	spin_unlock_bh(&dev->stub_lock);
	return stub ?: kzalloc(sizeof(*stub), GFP_KERNEL);
}

static void put_stub(struct tbv_dev *dev, struct tbv_qp_stub *stub)
{
	spin_lock_bh(&dev->stub_lock);
	list_add_tail(&stub->node, &dev->stubs);
	dev->stub_count++;
	spin_unlock_bh(&dev->stub_lock);
}

static int check_init(struct ib_qp *ibqp, struct ib_qp_init_attr *init)
{
	struct ib_qp_cap *cap = &init->cap;

	if (init->qp_type != IB_QPT_RC || init->create_flags || init->srq ||
	    init->rwq_ind_tbl)
		return -EOPNOTSUPP;
	if (!init->send_cq || !init->recv_cq || !ibqp->uobject)
		return -EINVAL;
	if (cap->max_send_wr > TBV_MAX_QP_WR ||
	    cap->max_recv_wr > TBV_MAX_QP_WR ||
	    cap->max_send_sge > TBV_MAX_SGE ||
	    cap->max_recv_sge > TBV_MAX_SGE ||
	    cap->max_inline_data > TBV_MAX_INLINE)
		return -EINVAL;
	return 0;
}

static int alloc_queues(struct tbv_qp *qp, struct ib_qp_cap *cap)
{
	struct tbv_sq *sq = &qp->sq;
	struct tbv_rq *rq = &qp->rq;

	sq->size = roundup_pow_of_two(max(cap->max_send_wr, 1u));
	sq->mask = sq->size - 1;
	sq->max_sge = max(cap->max_send_sge, 1u);
	sq->max_inline = cap->max_inline_data;
	rq->size = roundup_pow_of_two(max(cap->max_recv_wr, 1u));
	rq->mask = rq->size - 1;
	rq->max_sge = max(cap->max_recv_sge, 1u);

	sq->wqe = kvcalloc(sq->size, sizeof(*sq->wqe), GFP_KERNEL_ACCOUNT);
	sq->sge = kvcalloc(sq->size, sizeof(*sq->sge) * sq->max_sge,
			   GFP_KERNEL_ACCOUNT);
	rq->wqe = kvcalloc(rq->size, sizeof(*rq->wqe), GFP_KERNEL_ACCOUNT);
	rq->sge = kvcalloc(rq->size, sizeof(*rq->sge) * rq->max_sge,
			   GFP_KERNEL_ACCOUNT);
	if (sq->max_inline)
		sq->inline_data = kvcalloc(sq->size, sq->max_inline,
					   GFP_KERNEL_ACCOUNT);
	if (!sq->wqe || !sq->sge || !rq->wqe || !rq->sge ||
	    (sq->max_inline && !sq->inline_data))
		return -ENOMEM;

	cap->max_send_wr = sq->size;
	cap->max_send_sge = sq->max_sge;
	cap->max_recv_wr = rq->size;
	cap->max_recv_sge = rq->max_sge;
	return 0;
}

static void free_queues(struct tbv_qp *qp)
{
	kvfree(qp->sq.wqe);
	kvfree(qp->sq.sge);
	kvfree(qp->sq.inline_data);
	kvfree(qp->rq.wqe);
	kvfree(qp->rq.sge);
}

int tbv_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *init,
		  struct ib_udata *udata)
{
	struct tbv_dev *dev = to_tbv_dev(ibqp->device);
	struct tbv_qp *qp = to_tbv_qp(ibqp);
	int err;

	if (READ_ONCE(dev->leaving))
		return -ENODEV;
	err = check_init(ibqp, init);
	if (err)
		return err;
	err = tbv_object_get(&dev->n_qps, TBV_MAX_QP);
	if (err)
		return err;
	err = alloc_queues(qp, &init->cap);
	if (err)
		goto err_queues;
	qp->stub = get_stub(dev);
	if (!qp->stub) {
		err = -ENOMEM;
		goto err_queues;
	}

	qp->dev = dev;
	qp->sig_all = init->sq_sig_type == IB_SIGNAL_ALL_WR;
	qp->attr.cap = init->cap;
	qp->state = IB_QPS_RESET;
	spin_lock_init(&qp->lock);
	INIT_LIST_HEAD(&qp->wait_node);
	refcount_set(&qp->refs, 1);
	init_completion(&qp->idle);
	tbv_retry_init(qp);

	/* Numbers go round: a late frame finds no QP rather than a new one. */
	err = xa_alloc_cyclic_bh(&dev->qps, &qp->qpn, qp,
				 XA_LIMIT(TBV_QPN_MIN, TBV_QPN_MAX),
				 &dev->next_qpn, GFP_KERNEL);
	if (err < 0)
		goto err_stub;
	ibqp->qp_num = qp->qpn;
	qp->stub->qp.qp_num = qp->qpn;
	trace_qp_state(dev->index, qp->qpn, IB_QPS_RESET, IB_QPS_RESET,
		       task_tgid_nr(current));
	return 0;

err_stub:
	put_stub(dev, qp->stub);
err_queues:
	free_queues(qp);
	atomic_dec(&dev->n_qps);
	return err;
}

struct tbv_qp *tbv_qp_get(struct tbv_dev *dev, u32 qpn)
{
	struct tbv_qp *qp;

	xa_lock_bh(&dev->qps);
	qp = xa_load(&dev->qps, qpn);
	if (qp)
		refcount_inc(&qp->refs);
	xa_unlock_bh(&dev->qps);
	return qp;
}

void tbv_qp_put(struct tbv_qp *qp)
{
	if (refcount_dec_and_test(&qp->refs))
		complete(&qp->idle);
}

/* Bounded: references are only held by softirqs at work and by waiters. */
int tbv_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata)
{
	struct tbv_qp *qp = to_tbv_qp(ibqp);
	struct tbv_dev *dev = qp->dev;

	xa_erase_bh(&dev->qps, qp->qpn);
	spin_lock_bh(&qp->lock);
	tbv_qp_reset(qp);
	spin_unlock_bh(&qp->lock);
	tbv_retry_shutdown(qp);
	tbv_qp_put(qp);
	wait_for_completion(&qp->idle);

	tbv_cq_purge(to_tbv_cq(ibqp->send_cq), qp->stub);
	tbv_cq_purge(to_tbv_cq(ibqp->recv_cq), qp->stub);
	trace_qp_state(dev->index, qp->qpn, qp->state, TBV_QPS_DESTROYED,
		       task_tgid_nr(current));
	put_stub(dev, qp->stub);
	free_queues(qp);
	atomic_dec(&dev->n_qps);
	return 0;
}
