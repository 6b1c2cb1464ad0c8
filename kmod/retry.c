// SPDX-License-Identifier: GPL-2.0
/*
 * Retry: what makes a requester send again.
 *
 *   no reply in time    from una_psn, waiting twice as long each time, up to a
 *                       cap; after retry_cnt times without progress it fails
 *   sequence error      from the PSN the responder misses, at once; the same
 *                       PSN again counts as a retry
 *   RNR                 from the refused PSN, after the time the responder asks
 *                       for, growing to a cap; rnr_retry times, 7 is for ever
 *
 * One timer serves the first and the last: while a QP waits because of an RNR
 * nothing is on its way. A timer that has been moved while it fired sees its
 * deadline ahead and does nothing.
 */
#include "tbv.h"
#include "trace.h"

/* A loaded machine delays softirqs by more than most QPs' timeouts. */
#define RETRY_MIN_MS		200
#define RETRY_CAP_MS		2000
#define RETRY_MAX_SHIFT		4
#define RETRY_INFINITE_MS	1000
#define RNR_CAP_MS		100

/* Reasons in the retransmit tracepoint. */
enum {
	REASON_TIMEOUT,
	REASON_SEQUENCE,
	REASON_RNR,
};

static void set_timer(struct tbv_qp *qp, unsigned long delay)
{
	qp->sq.deadline = jiffies + delay;
	mod_timer(&qp->sq.timer, qp->sq.deadline);
}

/* 4.096 us * 2^timeout, and 0 means for ever. */
static unsigned long retry_delay(const struct tbv_qp *qp)
{
	u32 shift = min_t(u32, qp->sq.retries, RETRY_MAX_SHIFT);
	u64 base, delay;

	if (!qp->attr.timeout)
		return msecs_to_jiffies(RETRY_INFINITE_MS);
	base = max_t(u64, (4096ULL << qp->attr.timeout) / NSEC_PER_MSEC,
		     RETRY_MIN_MS);
	delay = min_t(u64, base << shift, max_t(u64, base, RETRY_CAP_MS));
	return msecs_to_jiffies(delay);
}

/* The IB encoding runs 10, 20, 30, 40, 60, 80, 120 us ...; 0 is the longest. */
static u32 rnr_usecs(u8 timer)
{
	if (!timer)
		return 655360;
	if (timer == 1)
		return 10;
	return (timer & 1 ? 15u : 10u) << (timer / 2);
}

static unsigned long rnr_delay(const struct tbv_qp *qp, u8 timer)
{
	u32 asked = rnr_usecs(timer);
	u32 shift = min_t(u32, qp->sq.rnr_retries, 7);

	return usecs_to_jiffies(clamp_t(u64, (u64)asked << shift, asked,
					max(asked, RNR_CAP_MS * 1000u)));
}

/* Something is on its way: expect a reply. */
void tbv_retry_start(struct tbv_qp *qp)
{
	if (!timer_pending(&qp->sq.timer))
		set_timer(qp, retry_delay(qp));
}

void tbv_retry_stop(struct tbv_qp *qp)
{
	timer_delete(&qp->sq.timer);
	qp->sq.deadline = jiffies + MAX_JIFFY_OFFSET;
	qp->sq.rnr_wait = false;
}

static void go_back(struct tbv_qp *qp, u32 psn, u32 reason, u32 retries)
{
	tbv_count(qp->dev, TBV_TX_RETRANSMITS);
	trace_retransmit(qp->dev->index, qp->qpn, psn, reason, retries);
	tbv_req_go_to(qp, psn);
}

/* May it be tried once more? If not the QP has failed. */
static bool count_retry(struct tbv_qp *qp)
{
	if (!qp->attr.timeout)
		return true;
	if (qp->sq.retries < qp->attr.retry_cnt) {
		qp->sq.retries++;
		return true;
	}
	tbv_req_fail(qp, IB_WC_RETRY_EXC_ERR);
	return false;
}

/* The responder misses @psn; everything before it is acknowledged. */
void tbv_retry_sequence(struct tbv_qp *qp, u32 psn)
{
	if (qp->sq.nak_psn == psn && !count_retry(qp))
		return;
	qp->sq.nak_psn = psn;
	go_back(qp, psn, REASON_SEQUENCE, qp->sq.retries);
}

/* The responder had no receive for @psn. */
void tbv_retry_rnr(struct tbv_qp *qp, u32 psn, u8 rnr_timer)
{
	struct tbv_sq *sq = &qp->sq;

	trace_rnr(qp->dev->index, qp->qpn, true, psn, rnr_timer,
		  sq->rnr_retries);
	if (qp->attr.rnr_retry != 7 && sq->rnr_retries >= qp->attr.rnr_retry) {
		tbv_req_fail(qp, IB_WC_RNR_RETRY_EXC_ERR);
		return;
	}
	tbv_req_go_to(qp, psn);
	sq->rnr_wait = true;
	set_timer(qp, rnr_delay(qp, rnr_timer));
	if (sq->rnr_retries < U8_MAX)
		sq->rnr_retries++;
}

static void expired(struct tbv_qp *qp)
{
	struct tbv_sq *sq = &qp->sq;

	if (sq->rnr_wait) {
		sq->rnr_wait = false;
		go_back(qp, sq->next_psn, REASON_RNR, sq->rnr_retries);
	} else if (sq->una_psn != sq->max_psn) {
		tbv_count(qp->dev, TBV_TX_TIMEOUTS);
		if (!count_retry(qp))
			return;
		go_back(qp, sq->una_psn, REASON_TIMEOUT, sq->retries);
		/* With a window full of lost frames no send restarts it. */
		tbv_retry_start(qp);
	}
	tbv_req_run(qp);
}

static void retry_timer(struct timer_list *timer)
{
	struct tbv_qp *qp = timer_container_of(qp, timer, sq.timer);

	spin_lock(&qp->lock);
	if (qp->state == IB_QPS_RTS && time_after_eq(jiffies, qp->sq.deadline))
		expired(qp);
	spin_unlock(&qp->lock);
}

void tbv_retry_init(struct tbv_qp *qp)
{
	timer_setup(&qp->sq.timer, retry_timer, 0);
}

/* The QP is going away; called without its lock. */
void tbv_retry_shutdown(struct tbv_qp *qp)
{
	timer_shutdown_sync(&qp->sq.timer);
}
