/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Wire format: what stands in a frame of at most 4096 bytes.
 *
 * Every field has a place of its own and means one thing, whatever the opcode.
 * This header and wire.c are pure code: they build in the kernel and in user
 * space, where they are fuzzed.
 *
 * offset size field
 *      0    1 version        TBV_WIRE_VERSION
 *      1    1 opcode         enum tbv_wire_opcode
 *      2    2 flags          TBV_WIRE_F_*
 *      4    4 dest_qpn       24 bits
 *      8    4 src_qpn        24 bits
 *     12    4 psn            24 bits; in a reply the PSN it speaks about
 *     16    4 path_seq       counts every frame put on this path
 *     20    4 credit_limit   first path_seq the receiver may not send yet
 *     24    4 total_len      bytes of the whole message
 *     28    4 frag_offset    place of this payload in the message
 *     32    8 remote_addr    RDMA operations; zero otherwise
 *     40    4 rkey           RDMA operations; zero otherwise
 *     44    4 imm            immediate value in host order; zero without one
 *     48    2 payload_len    bytes after the header
 *     50    1 syndrome       replies: enum tbv_wire_syndrome
 *     51    1 rnr_timer      RNR replies: IB encoding, 5 bits
 *     52   12 reserved       zero
 */
#ifndef TBV_WIRE_H
#define TBV_WIRE_H

#ifdef __KERNEL__
#include <linux/types.h>
#else
#include "tests/wire_shim.h"
#endif

#define TBV_WIRE_VERSION	1
#define TBV_FRAME_SIZE		4096
#define TBV_WIRE_HDR_SIZE	64
#define TBV_WIRE_MAX_PAYLOAD	(TBV_FRAME_SIZE - TBV_WIRE_HDR_SIZE)
#define TBV_WIRE_MAX_MSG	0x40000000u
#define TBV_WIRE_24BIT		0xffffffu

enum tbv_wire_opcode {
	TBV_WIRE_SEND		= 0x01,
	TBV_WIRE_SEND_IMM	= 0x02,
	TBV_WIRE_REPLY		= 0x40,
	TBV_WIRE_CREDIT		= 0x80,
	TBV_WIRE_CREDIT_REQ	= 0x81,
};

/* The receiver answers this frame at once. */
#define TBV_WIRE_F_ACK_REQ	0x0001
/* The completion this message makes is a solicited one. */
#define TBV_WIRE_F_SOLICITED	0x0002
#define TBV_WIRE_F_ALL		(TBV_WIRE_F_ACK_REQ | TBV_WIRE_F_SOLICITED)

enum tbv_wire_syndrome {
	TBV_SYN_NONE		= 0,
	TBV_SYN_ACK		= 1,	/* all up to and with psn arrived */
	TBV_SYN_NAK_SEQ		= 2,	/* psn is missing: send again from it */
	TBV_SYN_RNR		= 3,	/* no receive posted for psn: later */
	TBV_SYN_NAK_INVALID	= 4,	/* psn broke the rules or is too long */
	TBV_SYN_NAK_OP		= 5,	/* the responder could not place psn */
};

struct tbv_wire_hdr {
	u8 opcode;
	u8 syndrome;
	u8 rnr_timer;
	u16 flags;
	u16 payload_len;
	u32 dest_qpn;
	u32 src_qpn;
	u32 psn;
	u32 path_seq;
	u32 credit_limit;
	u32 total_len;
	u32 frag_offset;
	u32 rkey;
	u32 imm;
	u64 remote_addr;
};

/* Why a frame was refused; 0 is a good one. */
enum tbv_wire_error {
	TBV_WIRE_OK		= 0,
	TBV_WIRE_E_SIZE		= -1,
	TBV_WIRE_E_VERSION	= -2,
	TBV_WIRE_E_OPCODE	= -3,
	TBV_WIRE_E_FLAGS	= -4,
	TBV_WIRE_E_NUMBER	= -5,	/* QPN or PSN wider than 24 bits */
	TBV_WIRE_E_LENGTH	= -6,	/* lengths that do not add up */
	TBV_WIRE_E_FIELD	= -7,	/* a field this opcode must leave zero */
};

void tbv_wire_encode(const struct tbv_wire_hdr *hdr, u8 *buf);
enum tbv_wire_error tbv_wire_decode(struct tbv_wire_hdr *hdr, const u8 *buf,
				    u32 size);

static inline bool tbv_wire_is_request(u8 opcode)
{
	return opcode == TBV_WIRE_SEND || opcode == TBV_WIRE_SEND_IMM;
}

static inline bool tbv_wire_is_last(const struct tbv_wire_hdr *hdr)
{
	return hdr->frag_offset + hdr->payload_len == hdr->total_len;
}

/* Frames a message of @length bytes takes; an empty message takes one. */
static inline u32 tbv_wire_frames(u32 length)
{
	if (!length)
		return 1;
	return (length - 1) / TBV_WIRE_MAX_PAYLOAD + 1;
}

/* Distance from PSN @b to PSN @a on the 24-bit circle, negative when before. */
static inline int tbv_psn_diff(u32 a, u32 b)
{
	return (int)((a - b) << 8) >> 8;
}

static inline u32 tbv_psn_add(u32 psn, u32 n)
{
	return (psn + n) & TBV_WIRE_24BIT;
}

#endif /* TBV_WIRE_H */
