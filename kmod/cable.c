// SPDX-License-Identifier: GPL-2.0
/*
 * A virtual cable: two devices, one loop ring pair in each direction between
 * them, and one from each device to itself.
 */
#include <linux/debugfs.h>
#include <linux/slab.h>

#include "cable.h"
#include "loop.h"
#include "tbv.h"

/**
 * struct tbv_cable - two ends and what joins them
 * @dev: the ends
 * @between: frames sent by @dev[i]
 * @self: frames @dev[i] sends to itself
 * @unplug_lock: one change of the plug at a time
 * @unplugged: both directions lose everything
 */
struct tbv_cable {
	struct tbv_dev *dev[2];
	struct tbv_loop_dir between[2];
	struct tbv_loop_dir self[2];
	struct mutex unplug_lock; /* see above */
	bool unplugged;
};

static struct tbv_cable *cables[TBV_MAX_CABLES];
static DEFINE_MUTEX(cables_lock);
static struct dentry *cables_file;

bool tbv_cable_unplugged(const struct tbv_cable *cable)
{
	return READ_ONCE(cable->unplugged);
}

void tbv_cable_unplug(struct tbv_cable *cable, bool unplug)
{
	int i;

	mutex_lock(&cable->unplug_lock);
	if (cable->unplugged != unplug) {
		cable->unplugged = unplug;
		for (i = 0; i < 2; i++)
			WRITE_ONCE(cable->between[i].fault.unplugged, unplug);
		for (i = 0; i < 2; i++)
			tbv_dev_set_link(cable->dev[i], !unplug);
	}
	mutex_unlock(&cable->unplug_lock);
}

static void stop_end(struct tbv_cable *cable, int end)
{
	struct tbv_dev *dev = cable->dev[end];
	int i;

	for (i = 0; i < TBV_N_PATHS; i++)
		tbv_path_stop(&dev->path[i]);
}

static int start_end(struct tbv_cable *cable, int end)
{
	struct tbv_dev *dev = cable->dev[end];
	int err;

	err = tbv_path_init(&dev->path[TBV_PATH_CABLE], dev, TBV_PATH_CABLE,
			    &cable->between[end].tx.ring,
			    &cable->between[!end].rx.ring);
	if (err)
		return err;
	return tbv_path_init(&dev->path[TBV_PATH_SELF], dev, TBV_PATH_SELF,
			     &cable->self[end].tx.ring,
			     &cable->self[end].rx.ring);
}

static int register_end(struct tbv_cable *cable, int end)
{
	struct tbv_dev *dev = cable->dev[end];
	int err;

	err = tbv_dev_register(dev);
	if (err)
		return err;
	tbv_debugfs_add(dev);
	tbv_fault_debugfs(dev->debugfs, &cable->between[end].fault, cable);
	return 0;
}

/* Both devices are gone from the RDMA core when this is called. */
static void free_cable(struct tbv_cable *cable)
{
	int i;

	for (i = 0; i < 2; i++)
		if (cable->dev[i])
			stop_end(cable, i);
	for (i = 0; i < 2; i++)
		if (cable->dev[i])
			tbv_dev_free(cable->dev[i]);
	mutex_destroy(&cable->unplug_lock);
	kfree(cable);
}

static void destroy_cable(struct tbv_cable *cable)
{
	int i;

	for (i = 0; i < 2; i++)
		tbv_debugfs_remove(cable->dev[i]);
	for (i = 0; i < 2; i++)
		tbv_dev_unregister(cable->dev[i]);
	free_cable(cable);
}

static struct tbv_cable *create_cable(unsigned int number)
{
	u16 lid = 2 * number + 1;
	struct tbv_cable *cable;
	int err = -ENOMEM;
	int i;

	cable = kzalloc(sizeof(*cable), GFP_KERNEL);
	if (!cable)
		return ERR_PTR(-ENOMEM);
	mutex_init(&cable->unplug_lock);
	for (i = 0; i < 2; i++) {
		tbv_loop_init(&cable->between[i]);
		tbv_loop_init(&cable->self[i]);
	}
	for (i = 0; i < 2; i++) {
		cable->dev[i] = tbv_dev_alloc(2 * number + i, lid + i,
					      lid + !i);
		if (!cable->dev[i])
			goto err_free;
		err = start_end(cable, i);
		if (err)
			goto err_free;
	}
	err = register_end(cable, 0);
	if (err)
		goto err_free;
	err = register_end(cable, 1);
	if (err)
		goto err_unregister;
	return cable;

err_unregister:
	tbv_debugfs_remove(cable->dev[0]);
	tbv_dev_unregister(cable->dev[0]);
err_free:
	free_cable(cable);
	return ERR_PTR(err);
}

/**
 * set_cables - make as many cables as there shall be, or take some away
 * @count: how many
 *
 * Taking one away is what unplugging a host is: its two devices go, whoever
 * has them open.
 *
 * Return: 0, or why the first cable that is missing could not be made.
 */
static int set_cables(unsigned int count)
{
	struct tbv_cable *cable;
	unsigned int i;
	int err = 0;

	mutex_lock(&cables_lock);
	for (i = count; i < TBV_MAX_CABLES; i++) {
		if (cables[i])
			destroy_cable(cables[i]);
		cables[i] = NULL;
	}
	for (i = 0; i < count && !err; i++) {
		if (cables[i])
			continue;
		cable = create_cable(i);
		if (IS_ERR(cable))
			err = PTR_ERR(cable);
		else
			cables[i] = cable;
	}
	mutex_unlock(&cables_lock);
	return err;
}

static int cables_get(void *data, u64 *value)
{
	unsigned int i;

	*value = 0;
	mutex_lock(&cables_lock);
	for (i = 0; i < TBV_MAX_CABLES; i++)
		*value += !!cables[i];
	mutex_unlock(&cables_lock);
	return 0;
}

static int cables_set(void *data, u64 value)
{
	return value > TBV_MAX_CABLES ? -EINVAL : set_cables(value);
}

DEFINE_DEBUGFS_ATTRIBUTE(cables_fops, cables_get, cables_set, "%llu\n");

int tbv_cables_init(unsigned int count, struct dentry *debugfs)
{
	int err = set_cables(count);

	if (err) {
		set_cables(0);
		return err;
	}
	cables_file = debugfs_create_file_unsafe("cables", 0600, debugfs, NULL,
						 &cables_fops);
	return 0;
}

void tbv_cables_exit(void)
{
	/* First, or somebody could make new ones. */
	debugfs_remove(cables_file);
	set_cables(0);
}
