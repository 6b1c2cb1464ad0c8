// SPDX-License-Identifier: GPL-2.0
/*
 * Memory regions: user pages, pinned, under a random key. Every access checks
 * domain, rights and range anew and holds a reference while it copies, so that
 * deregistration can wait until nothing can write any more.
 */
#include <linux/highmem.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <rdma/ib_umem.h>

#include "tbv.h"
#include "trace.h"

#define TBV_ACCESS_ALL (IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | \
			IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_ATOMIC)

/**
 * tbv_mr_get - find a region that allows an access
 * @dev: device
 * @pd: domain the access comes from
 * @key: lkey or rkey, they are the same
 * @addr: first byte
 * @length: number of bytes
 * @access: rights that are needed
 *
 * Return: the region, to be given to tbv_mr_put(), or NULL.
 */
struct tbv_mr *tbv_mr_get(struct tbv_dev *dev, struct ib_pd *pd, u32 key,
			  u64 addr, u64 length, int access)
{
	struct tbv_mr *mr;

	rcu_read_lock();
	mr = xa_load(&dev->mrs, key);
	if (mr && !refcount_inc_not_zero(&mr->refs))
		mr = NULL;
	rcu_read_unlock();
	if (!mr)
		return NULL;

	if (mr->base.pd == pd && (mr->access & access) == access &&
	    addr >= mr->iova && length <= mr->length &&
	    addr - mr->iova <= mr->length - length)
		return mr;
	tbv_mr_put(mr);
	return NULL;
}

void tbv_mr_put(struct tbv_mr *mr)
{
	if (refcount_dec_and_test(&mr->refs))
		complete(&mr->idle);
}

/**
 * tbv_mr_copy - copy between a buffer and a region
 * @mr: from tbv_mr_get() for the same range
 * @addr: first byte in the region
 * @buf: kernel memory
 * @length: number of bytes
 * @to_mr: direction
 */
void tbv_mr_copy(struct tbv_mr *mr, u64 addr, void *buf, u32 length,
		 bool to_mr)
{
	u64 offset = addr - mr->iova + ib_umem_offset(mr->umem);
	unsigned long page = offset >> PAGE_SHIFT;
	u32 in_page = offset_in_page(offset);
	u32 part;

	while (length) {
		part = min_t(u32, length, PAGE_SIZE - in_page);
		if (to_mr)
			memcpy_to_page(mr->pages[page], in_page, buf, part);
		else
			memcpy_from_page(buf, mr->pages[page], in_page, part);
		buf += part;
		length -= part;
		in_page = 0;
		page++;
	}
}

static int collect_pages(struct tbv_mr *mr)
{
	size_t count = ib_umem_num_pages(mr->umem);
	struct sg_page_iter piter;
	size_t i = 0;

	mr->pages = kvcalloc(count, sizeof(*mr->pages), GFP_KERNEL_ACCOUNT);
	if (!mr->pages)
		return -ENOMEM;
	for_each_sgtable_page(&mr->umem->sgt_append.sgt, &piter, 0) {
		if (i == count)
			return -EINVAL;
		mr->pages[i++] = sg_page_iter_page(&piter);
	}
	return i == count ? 0 : -EINVAL;
}

/* A key no one can guess from another one. */
static int insert_random(struct tbv_dev *dev, struct tbv_mr *mr)
{
	int tries = 32;
	u32 key;
	int err;

	do {
		key = get_random_u32_inclusive(1, U32_MAX);
		mr->base.lkey = key;
		mr->base.rkey = key;
		err = xa_insert_bh(&dev->mrs, key, mr, GFP_KERNEL_ACCOUNT);
	} while (err == -EBUSY && --tries);
	return err;
}

struct ib_mr *tbv_reg_user_mr(struct ib_pd *pd, u64 start, u64 length,
			      u64 iova, int access, TBV_DMAH_ARG
			      struct ib_udata *udata)
{
	struct tbv_dev *dev = to_tbv_dev(pd->device);
	struct tbv_mr *mr;
	int err;

	access &= ~IB_ACCESS_OPTIONAL;
	if (TBV_DMAH_GIVEN || access & ~TBV_ACCESS_ALL)
		return ERR_PTR(-EOPNOTSUPP);
	if (!length || length > TBV_MAX_MR_SIZE || iova + length < iova)
		return ERR_PTR(-EINVAL);

	mr = kzalloc(sizeof(*mr), GFP_KERNEL_ACCOUNT);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	err = tbv_object_get(&dev->n_mrs, TBV_MAX_MR);
	if (err)
		goto err_free;
	mr->umem = ib_umem_get(pd->device, start, length, access);
	if (IS_ERR(mr->umem)) {
		err = PTR_ERR(mr->umem);
		goto err_count;
	}
	err = collect_pages(mr);
	if (err)
		goto err_umem;

	mr->base.pd = pd;
	mr->iova = iova;
	mr->length = length;
	mr->access = access;
	refcount_set(&mr->refs, 1);
	init_completion(&mr->idle);
	err = insert_random(dev, mr);
	if (err)
		goto err_umem;

	trace_mr_reg(dev->index, mr->base.lkey, iova, length, access,
		     task_tgid_nr(current));
	return &mr->base;

err_umem:
	kvfree(mr->pages);
	ib_umem_release(mr->umem);
err_count:
	atomic_dec(&dev->n_mrs);
err_free:
	kfree(mr);
	return ERR_PTR(err);
}

int tbv_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata)
{
	struct tbv_mr *mr = to_tbv_mr(ibmr);
	struct tbv_dev *dev = to_tbv_dev(ibmr->device);

	xa_erase_bh(&dev->mrs, mr->base.lkey);
	tbv_mr_put(mr);
	/* Copies run with softirqs off: this is short. */
	wait_for_completion(&mr->idle);

	trace_mr_dereg(dev->index, mr->base.lkey, mr->length,
		       task_tgid_nr(current));
	kvfree(mr->pages);
	ib_umem_release(mr->umem);
	kfree_rcu(mr, rcu);
	atomic_dec(&dev->n_mrs);
	return 0;
}
