/* SPDX-License-Identifier: GPL-2.0 */
/* Faults on a virtual cable, made on purpose. */
#ifndef TBV_FAULT_H
#define TBV_FAULT_H

#include <linux/types.h>

struct dentry;
struct tbv_cable;

enum tbv_fault_kind {
	TBV_FAULT_NONE,
	TBV_FAULT_DROP,
	TBV_FAULT_DUPLICATE,
	TBV_FAULT_REORDER,
	TBV_FAULT_CORRUPT,
	TBV_N_FAULTS
};

/**
 * struct tbv_fault - for one direction
 * @every: of each kind, make it with every so manieth frame; 0 never
 * @made: of each kind, how many were made
 * @frames: frames seen
 * @delay_ns: how long a frame stays on the cable
 * @unplugged: everything is lost
 */
struct tbv_fault {
	u32 every[TBV_N_FAULTS];
	u32 made[TBV_N_FAULTS];
	u32 frames;
	u64 delay_ns;
	bool unplugged;
};

enum tbv_fault_kind tbv_fault_next(struct tbv_fault *fault);
void tbv_fault_debugfs(struct dentry *parent, struct tbv_fault *fault,
		       struct tbv_cable *cable);

#endif /* TBV_FAULT_H */
