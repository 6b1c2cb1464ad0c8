/* SPDX-License-Identifier: GPL-2.0 */
/* What wire.c takes from the kernel, for user space. */
#ifndef TBV_WIRE_SHIM_H
#define TBV_WIRE_SHIM_H

#include <linux/types.h>
#include <stdbool.h>

#include <string.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;

static inline void put_unaligned_le16(u16 value, u8 *to)
{
	to[0] = value;
	to[1] = value >> 8;
}

static inline void put_unaligned_le32(u32 value, u8 *to)
{
	put_unaligned_le16(value, to);
	put_unaligned_le16(value >> 16, to + 2);
}

static inline void put_unaligned_le64(u64 value, u8 *to)
{
	put_unaligned_le32(value, to);
	put_unaligned_le32(value >> 32, to + 4);
}

static inline u16 get_unaligned_le16(const u8 *from)
{
	return from[0] | from[1] << 8;
}

static inline u32 get_unaligned_le32(const u8 *from)
{
	return get_unaligned_le16(from) |
	       (u32)get_unaligned_le16(from + 2) << 16;
}

static inline u64 get_unaligned_le64(const u8 *from)
{
	return get_unaligned_le32(from) |
	       (u64)get_unaligned_le32(from + 4) << 32;
}

#endif /* TBV_WIRE_SHIM_H */
