// SPDX-License-Identifier: GPL-2.0
/* Scatter/gather lists: check one, copy a part of one. */
#include "tbv.h"

/**
 * tbv_sge_check - may the first @length bytes of a list be used?
 * @qp: whose domain counts
 * @sge: the list
 * @num_sge: its entries
 * @length: bytes that will be used, not more than the list has
 * @access: rights that are needed
 *
 * Return: 0 or -EACCES.
 */
int tbv_sge_check(struct tbv_qp *qp, const struct ib_sge *sge, u32 num_sge,
		  u64 length, int access)
{
	struct tbv_mr *mr;
	u64 part;

	for (; length && num_sge; sge++, num_sge--) {
		part = min_t(u64, length, sge->length);
		if (!part)
			continue;
		mr = tbv_mr_get(qp->dev, qp->base.pd, sge->lkey, sge->addr,
				part, access);
		if (!mr)
			return -EACCES;
		tbv_mr_put(mr);
		length -= part;
	}
	return length ? -EACCES : 0;
}

/**
 * tbv_sge_copy - copy between a buffer and a part of a list
 * @qp: whose domain counts
 * @sge: the list
 * @num_sge: its entries
 * @offset: where the part begins, in bytes from the start of the list
 * @buf: kernel memory
 * @length: bytes to copy
 * @to_sge: direction; also decides which rights are needed
 *
 * Return: 0 or -EACCES; regions may have gone since the list was checked.
 */
int tbv_sge_copy(struct tbv_qp *qp, const struct ib_sge *sge, u32 num_sge,
		 u32 offset, void *buf, u32 length, bool to_sge)
{
	int access = to_sge ? IB_ACCESS_LOCAL_WRITE : 0;
	struct tbv_mr *mr;
	u32 part;
	u64 addr;

	for (; length && num_sge; sge++, num_sge--) {
		if (offset >= sge->length) {
			offset -= sge->length;
			continue;
		}
		addr = sge->addr + offset;
		part = min(length, sge->length - offset);
		mr = tbv_mr_get(qp->dev, qp->base.pd, sge->lkey, addr, part,
				access);
		if (!mr)
			return -EACCES;
		tbv_mr_copy(mr, addr, buf, part, to_sge);
		tbv_mr_put(mr);
		buf += part;
		length -= part;
		offset = 0;
	}
	return length ? -EACCES : 0;
}
