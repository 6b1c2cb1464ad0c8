// SPDX-License-Identifier: GPL-2.0
/*
 * Feeds the wire decoder with random frames and with good frames of which a few
 * bytes were changed. Each frame lies at the end of its own allocation, so that
 * a sanitizer sees a read past it. What the decoder accepts must keep its
 * promises and encode back to the same bytes.
 *
 * wire_fuzz [FRAMES [SEED]]
 */
#include <stdio.h>
#include <stdlib.h>

#include "../wire.h"

static u64 state;

static u64 rnd(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static u32 below(u32 n)
{
	return rnd() % n;
}

static void die(const char *what)
{
	fprintf(stderr, "wire_fuzz: %s\n", what);
	abort();
}

/* What the rest of the driver relies on. */
static void check_promises(const struct tbv_wire_hdr *hdr, u32 size)
{
	if (hdr->payload_len != size - TBV_WIRE_HDR_SIZE)
		die("payload is not what the frame holds");
	if (hdr->dest_qpn > TBV_WIRE_24BIT || hdr->src_qpn > TBV_WIRE_24BIT ||
	    hdr->psn > TBV_WIRE_24BIT)
		die("number out of range");
	if (!tbv_wire_is_request(hdr->opcode)) {
		if (hdr->payload_len || hdr->total_len)
			die("control frame with payload");
		return;
	}
	if ((u64)hdr->frag_offset + hdr->payload_len > hdr->total_len ||
	    hdr->total_len > TBV_WIRE_MAX_MSG)
		die("fragment outside its message");
	if (!tbv_wire_is_last(hdr) && hdr->payload_len != TBV_WIRE_MAX_PAYLOAD)
		die("short fragment in the middle");
	if (!hdr->payload_len && hdr->total_len)
		die("empty fragment");
}

static u32 good_frame(u8 *buf)
{
	static const u8 opcodes[] = { TBV_WIRE_SEND, TBV_WIRE_SEND_IMM,
				      TBV_WIRE_REPLY, TBV_WIRE_CREDIT,
				      TBV_WIRE_CREDIT_REQ };
	struct tbv_wire_hdr hdr = { .opcode = opcodes[below(5)] };
	u32 frames, left;

	hdr.path_seq = rnd();
	hdr.credit_limit = rnd();
	if (hdr.opcode < TBV_WIRE_CREDIT) {
		hdr.dest_qpn = rnd() & TBV_WIRE_24BIT;
		hdr.src_qpn = rnd() & TBV_WIRE_24BIT;
		hdr.psn = rnd() & TBV_WIRE_24BIT;
	}
	if (tbv_wire_is_request(hdr.opcode)) {
		hdr.flags = rnd() & TBV_WIRE_F_ALL;
		hdr.total_len = rnd() % (1u << below(31));
		frames = tbv_wire_frames(hdr.total_len);
		hdr.frag_offset = below(frames) * TBV_WIRE_MAX_PAYLOAD;
		left = hdr.total_len - hdr.frag_offset;
		hdr.payload_len = left < TBV_WIRE_MAX_PAYLOAD ?
				  left : TBV_WIRE_MAX_PAYLOAD;
		if (hdr.opcode == TBV_WIRE_SEND_IMM)
			hdr.imm = rnd();
	} else if (hdr.opcode == TBV_WIRE_REPLY) {
		hdr.syndrome = TBV_SYN_ACK + below(TBV_SYN_NAK_OP);
		if (hdr.syndrome == TBV_SYN_RNR)
			hdr.rnr_timer = below(32);
	}
	tbv_wire_encode(&hdr, buf);
	return TBV_WIRE_HDR_SIZE + hdr.payload_len;
}

static u32 random_frame(u8 *buf)
{
	u32 size = below(4) ? TBV_WIRE_HDR_SIZE + below(64) :
			      below(TBV_FRAME_SIZE + 64);
	u32 i;

	for (i = 0; i < size && i < TBV_WIRE_HDR_SIZE; i++)
		buf[i] = rnd();
	if (size && below(2))
		buf[0] = TBV_WIRE_VERSION;
	return size;
}

static u32 mutated_frame(u8 *buf)
{
	u32 size = good_frame(buf);
	u32 changes = 1 + below(4);

	while (changes--)
		buf[below(TBV_WIRE_HDR_SIZE)] = below(3) ? rnd() : 0;
	if (!below(8))
		size = below(size + 64);
	return size;
}

static bool decode_one(const u8 *buf, u32 size)
{
	u8 *exact = malloc(size ? size : 1);
	u8 again[TBV_WIRE_HDR_SIZE];
	struct tbv_wire_hdr hdr;
	bool good;

	if (!exact)
		die("out of memory");
	memcpy(exact, buf, size);
	good = tbv_wire_decode(&hdr, exact, size) == TBV_WIRE_OK;
	if (good) {
		check_promises(&hdr, size);
		tbv_wire_encode(&hdr, again);
		if (memcmp(again, exact, sizeof(again)))
			die("an accepted header changed when encoded again");
	}
	free(exact);
	return good;
}

int main(int argc, char **argv)
{
	u32 frames = argc > 1 ? strtoul(argv[1], NULL, 0) : 1000000;
	static u8 buf[TBV_FRAME_SIZE + 64];
	u32 accepted = 0, i;

	state = argc > 2 ? strtoull(argv[2], NULL, 0) : 0x7462762d77697265;
	if (!state)
		state = 1;
	for (i = 0; i < frames; i++) {
		if (!decode_one(buf, good_frame(buf)))
			die("a good frame was refused");
		accepted += decode_one(buf, random_frame(buf));
		accepted += decode_one(buf, mutated_frame(buf));
	}
	printf("wire_fuzz: %u good, random and mutated frames each; ", frames);
	printf("%u of the latter two were harmless\n", accepted);
	return 0;
}
