// SPDX-License-Identifier: GPL-2.0
/*
 * Wire format: encode and decode. Whatever comes in is hostile: a header is
 * handed on only when every field of it is in range and fits the others.
 */
#ifdef __KERNEL__
#include <linux/string.h>
#include <linux/unaligned.h>
#endif
#include "wire.h"

void tbv_wire_encode(const struct tbv_wire_hdr *hdr, u8 *buf)
{
	memset(buf, 0, TBV_WIRE_HDR_SIZE);
	buf[0] = TBV_WIRE_VERSION;
	buf[1] = hdr->opcode;
	put_unaligned_le16(hdr->flags, buf + 2);
	put_unaligned_le32(hdr->dest_qpn, buf + 4);
	put_unaligned_le32(hdr->src_qpn, buf + 8);
	put_unaligned_le32(hdr->psn, buf + 12);
	put_unaligned_le32(hdr->path_seq, buf + 16);
	put_unaligned_le32(hdr->credit_limit, buf + 20);
	put_unaligned_le32(hdr->total_len, buf + 24);
	put_unaligned_le32(hdr->frag_offset, buf + 28);
	put_unaligned_le64(hdr->remote_addr, buf + 32);
	put_unaligned_le32(hdr->rkey, buf + 40);
	put_unaligned_le32(hdr->imm, buf + 44);
	put_unaligned_le16(hdr->payload_len, buf + 48);
	buf[50] = hdr->syndrome;
	buf[51] = hdr->rnr_timer;
}

static bool reserved_is_zero(const u8 *buf)
{
	return !get_unaligned_le32(buf + 52) && !get_unaligned_le64(buf + 56);
}

static enum tbv_wire_error check_request(const struct tbv_wire_hdr *hdr)
{
	if (hdr->total_len > TBV_WIRE_MAX_MSG ||
	    hdr->frag_offset > hdr->total_len ||
	    hdr->payload_len > hdr->total_len - hdr->frag_offset)
		return TBV_WIRE_E_LENGTH;
	/* All fragments but the last are full: a PSN tells its offset. */
	if (hdr->frag_offset % TBV_WIRE_MAX_PAYLOAD)
		return TBV_WIRE_E_LENGTH;
	if (!tbv_wire_is_last(hdr) && hdr->payload_len != TBV_WIRE_MAX_PAYLOAD)
		return TBV_WIRE_E_LENGTH;
	if (!hdr->payload_len && hdr->total_len)
		return TBV_WIRE_E_LENGTH;
	if (hdr->remote_addr || hdr->rkey || hdr->syndrome || hdr->rnr_timer)
		return TBV_WIRE_E_FIELD;
	if (hdr->imm && hdr->opcode != TBV_WIRE_SEND_IMM)
		return TBV_WIRE_E_FIELD;
	return TBV_WIRE_OK;
}

/* Frames that carry no message: replies and credits. */
static enum tbv_wire_error check_control(const struct tbv_wire_hdr *hdr)
{
	if (hdr->payload_len || hdr->total_len || hdr->frag_offset)
		return TBV_WIRE_E_LENGTH;
	if (hdr->flags)
		return TBV_WIRE_E_FLAGS;
	if (hdr->remote_addr || hdr->rkey || hdr->imm)
		return TBV_WIRE_E_FIELD;
	if (hdr->opcode == TBV_WIRE_REPLY) {
		if (hdr->syndrome < TBV_SYN_ACK ||
		    hdr->syndrome > TBV_SYN_NAK_OP)
			return TBV_WIRE_E_FIELD;
		if (hdr->rnr_timer > 31 ||
		    (hdr->rnr_timer && hdr->syndrome != TBV_SYN_RNR))
			return TBV_WIRE_E_FIELD;
	} else if (hdr->dest_qpn || hdr->src_qpn || hdr->psn || hdr->syndrome ||
		   hdr->rnr_timer) {
		return TBV_WIRE_E_FIELD;
	}
	return TBV_WIRE_OK;
}

/**
 * tbv_wire_decode - read and judge a header
 * @hdr: the result; only meaningful when the answer is TBV_WIRE_OK
 * @buf: the frame
 * @size: bytes in @buf; header and payload together, nothing after them
 *
 * Return: TBV_WIRE_OK, or why the frame is refused.
 */
enum tbv_wire_error tbv_wire_decode(struct tbv_wire_hdr *hdr, const u8 *buf,
				    u32 size)
{
	if (size < TBV_WIRE_HDR_SIZE || size > TBV_FRAME_SIZE)
		return TBV_WIRE_E_SIZE;
	if (buf[0] != TBV_WIRE_VERSION)
		return TBV_WIRE_E_VERSION;

	hdr->opcode = buf[1];
	hdr->flags = get_unaligned_le16(buf + 2);
	hdr->dest_qpn = get_unaligned_le32(buf + 4);
	hdr->src_qpn = get_unaligned_le32(buf + 8);
	hdr->psn = get_unaligned_le32(buf + 12);
	hdr->path_seq = get_unaligned_le32(buf + 16);
	hdr->credit_limit = get_unaligned_le32(buf + 20);
	hdr->total_len = get_unaligned_le32(buf + 24);
	hdr->frag_offset = get_unaligned_le32(buf + 28);
	hdr->remote_addr = get_unaligned_le64(buf + 32);
	hdr->rkey = get_unaligned_le32(buf + 40);
	hdr->imm = get_unaligned_le32(buf + 44);
	hdr->payload_len = get_unaligned_le16(buf + 48);
	hdr->syndrome = buf[50];
	hdr->rnr_timer = buf[51];

	if (hdr->payload_len != size - TBV_WIRE_HDR_SIZE)
		return TBV_WIRE_E_SIZE;
	if (hdr->flags & ~TBV_WIRE_F_ALL)
		return TBV_WIRE_E_FLAGS;
	if (hdr->dest_qpn > TBV_WIRE_24BIT || hdr->src_qpn > TBV_WIRE_24BIT ||
	    hdr->psn > TBV_WIRE_24BIT)
		return TBV_WIRE_E_NUMBER;
	if (!reserved_is_zero(buf))
		return TBV_WIRE_E_FIELD;

	switch (hdr->opcode) {
	case TBV_WIRE_SEND:
	case TBV_WIRE_SEND_IMM:
		return check_request(hdr);
	case TBV_WIRE_REPLY:
	case TBV_WIRE_CREDIT:
	case TBV_WIRE_CREDIT_REQ:
		return check_control(hdr);
	default:
		return TBV_WIRE_E_OPCODE;
	}
}
