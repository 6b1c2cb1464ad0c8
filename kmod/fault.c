// SPDX-License-Identifier: GPL-2.0
/*
 * Fault injection on a virtual cable, through debugfs:
 * usb4_rdma<N>/fault/{drop,duplicate,reorder,corrupt}_every and delay_ns act on
 * frames this device sends, unplug on the whole cable.
 */
#include <linux/debugfs.h>

#include "cable.h"
#include "fault.h"

/* The verdict on the next frame; the first kind that is due wins. */
enum tbv_fault_kind tbv_fault_next(struct tbv_fault *fault)
{
	enum tbv_fault_kind kind;
	u32 every;

	if (READ_ONCE(fault->unplugged))
		return TBV_FAULT_DROP;
	fault->frames++;
	for (kind = TBV_FAULT_DROP; kind < TBV_N_FAULTS; kind++) {
		every = READ_ONCE(fault->every[kind]);
		if (every && fault->frames % every == 0) {
			fault->made[kind]++;
			return kind;
		}
	}
	return TBV_FAULT_NONE;
}

static int unplug_get(void *data, u64 *value)
{
	*value = tbv_cable_unplugged(data);
	return 0;
}

static int unplug_set(void *data, u64 value)
{
	if (value > 1)
		return -EINVAL;
	tbv_cable_unplug(data, value);
	return 0;
}

DEFINE_DEBUGFS_ATTRIBUTE(unplug_fops, unplug_get, unplug_set, "%llu\n");

void tbv_fault_debugfs(struct dentry *parent, struct tbv_fault *fault,
		       struct tbv_cable *cable)
{
	static const char *const name[TBV_N_FAULTS][2] = {
		[TBV_FAULT_DROP] = { "drop_every", "dropped" },
		[TBV_FAULT_DUPLICATE] = { "duplicate_every", "duplicated" },
		[TBV_FAULT_REORDER] = { "reorder_every", "reordered" },
		[TBV_FAULT_CORRUPT] = { "corrupt_every", "corrupted" },
	};
	struct dentry *dir = debugfs_create_dir("fault", parent);
	enum tbv_fault_kind kind;

	for (kind = TBV_FAULT_DROP; kind < TBV_N_FAULTS; kind++) {
		debugfs_create_u32(name[kind][0], 0600, dir,
				   &fault->every[kind]);
		debugfs_create_u32(name[kind][1], 0400, dir,
				   &fault->made[kind]);
	}
	debugfs_create_u64("delay_ns", 0600, dir, &fault->delay_ns);
	debugfs_create_file_unsafe("unplug", 0600, dir, cable, &unplug_fops);
}
