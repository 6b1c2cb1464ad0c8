/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The one place that knows how kernels differ. Kbuild probes the headers and
 * defines TBV_HAVE_*; version numbers say nothing about a distribution kernel.
 */
#ifndef TBV_COMPAT_H
#define TBV_COMPAT_H

#include <linux/hrtimer.h>
#include <linux/timer.h>
#include <rdma/ib_verbs.h>

/* from_timer() became timer_container_of(). */
#ifndef timer_container_of
#define timer_container_of from_timer
#endif

static inline void
tbv_hrtimer_setup(struct hrtimer *timer,
		  enum hrtimer_restart (*function)(struct hrtimer *timer))
{
#ifdef TBV_HAVE_HRTIMER_SETUP
	hrtimer_setup(timer, function, CLOCK_MONOTONIC, HRTIMER_MODE_REL_SOFT);
#else
	hrtimer_init(timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_SOFT);
	timer->function = function;
#endif
}

/* reg_user_mr() got a DMA handle; this driver has none to offer. */
#ifdef TBV_HAVE_IB_DMAH
#define TBV_DMAH_ARG		struct ib_dmah *dmah,
#define TBV_DMAH_GIVEN		(!!dmah)
#else
#define TBV_DMAH_ARG
#define TBV_DMAH_GIVEN		false
#endif

#endif /* TBV_COMPAT_H */
