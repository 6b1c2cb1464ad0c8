// SPDX-License-Identifier: GPL-2.0
/* /sys/kernel/debug/tbv/usb4_rdma<index>/summary: "key: value" lines. */
#include <linux/debugfs.h>
#include <linux/seq_file.h>

#include "tbv.h"

static struct dentry *root;

static void show_path(struct seq_file *s, const char *name,
		      struct tbv_path *path)
{
	spin_lock_bh(&path->lock);
	seq_printf(s, "%s_credits: %u\n", name, tbv_credit_left(path));
	seq_printf(s, "%s_free_slots: %u\n", name, path->free_count);
	seq_printf(s, "%s_waiting_qps: %zu\n", name,
		   list_count_nodes(&path->waiters));
	spin_unlock_bh(&path->lock);
}

static int summary_show(struct seq_file *s, void *unused)
{
	struct tbv_dev *dev = s->private;
	int contexts = atomic_read(&dev->n_contexts);
	int pds = atomic_read(&dev->n_pds);
	int mrs = atomic_read(&dev->n_mrs);
	int cqs = atomic_read(&dev->n_cqs);
	int qps = atomic_read(&dev->n_qps);
	int i;

	seq_printf(s, "device: %s\n", dev_name(&dev->ibdev.dev));
	seq_printf(s, "index: %u\n", dev->index);
	seq_printf(s, "guid: %016llx\n", be64_to_cpu(dev->ibdev.node_guid));
	seq_printf(s, "lid: %u\n", dev->lid);
	seq_printf(s, "peer_lid: %u\n", dev->peer_lid);
	seq_printf(s, "link: %s\n", READ_ONCE(dev->link_up) ? "up" : "down");
	seq_printf(s, "contexts: %d\n", contexts);
	seq_printf(s, "pds: %d\n", pds);
	seq_printf(s, "mrs: %d\n", mrs);
	seq_printf(s, "cqs: %d\n", cqs);
	seq_printf(s, "qps: %d\n", qps);
	seq_printf(s, "live: %d\n", contexts + pds + mrs + cqs + qps);
	show_path(s, "cable", &dev->path[TBV_PATH_CABLE]);
	show_path(s, "self", &dev->path[TBV_PATH_SELF]);
	for (i = 0; i < TBV_N_COUNTERS; i++)
		seq_printf(s, "%s: %llu\n", tbv_counter_name[i],
			   tbv_counter_read(dev->counters, i));
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(summary);

void tbv_debugfs_add(struct tbv_dev *dev)
{
	char name[32];

	/* By index, not by name: udev may rename the device. */
	snprintf(name, sizeof(name), USB4_RDMA_DEVICE_NAME_FORMAT,
		 (int)dev->index);
	dev->debugfs = debugfs_create_dir(name, root);
	debugfs_create_file("summary", 0444, dev->debugfs, dev, &summary_fops);
	debugfs_create_u64("cq_first", 0600, dev->debugfs, &dev->cq_first);
}

void tbv_debugfs_remove(struct tbv_dev *dev)
{
	debugfs_remove_recursive(dev->debugfs);
}

struct dentry *tbv_debugfs_init(void)
{
	root = debugfs_create_dir("tbv", NULL);
	return root;
}

void tbv_debugfs_exit(void)
{
	debugfs_remove_recursive(root);
}
