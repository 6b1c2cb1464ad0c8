/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tracepoints: an interface. Scalars only, device index first; the table of
 * arguments and their meanings is docs/tracepoints.md, its number TBV_TRACE_ABI.
 * Fields are only ever appended.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM tbv

#if !defined(TBV_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define TBV_TRACE_H

#include <linux/tracepoint.h>

#define TBV_TRACE_ABI 1

DECLARE_EVENT_CLASS(tbv_post,
		    TP_PROTO(u32 dev, u32 qpn, u64 seq, u64 wr_id, u32 opcode,
			     u32 signalled, u32 length, u32 num_sge),
		    TP_ARGS(dev, qpn, seq, wr_id, opcode, signalled, length, num_sge),
		    TP_STRUCT__entry(__field(u32, dev)
				     __field(u32, qpn)
				     __field(u64, seq)
				     __field(u64, wr_id)
				     __field(u32, opcode)
				     __field(u32, signalled)
				     __field(u32, length)
				     __field(u32, num_sge)),
		    TP_fast_assign(__entry->dev = dev;
				   __entry->qpn = qpn;
				   __entry->seq = seq;
				   __entry->wr_id = wr_id;
				   __entry->opcode = opcode;
				   __entry->signalled = signalled;
				   __entry->length = length;
				   __entry->num_sge = num_sge;),
		    TP_printk("dev=%u qpn=%u seq=%llu wr_id=%#llx opcode=%u signalled=%u length=%u num_sge=%u",
			      __entry->dev, __entry->qpn, __entry->seq, __entry->wr_id,
			      __entry->opcode, __entry->signalled, __entry->length,
			      __entry->num_sge)
);

DEFINE_EVENT(tbv_post, post_send,
	     TP_PROTO(u32 dev, u32 qpn, u64 seq, u64 wr_id, u32 opcode,
		      u32 signalled, u32 length, u32 num_sge),
	     TP_ARGS(dev, qpn, seq, wr_id, opcode, signalled, length, num_sge)
);

DEFINE_EVENT(tbv_post, post_recv,
	     TP_PROTO(u32 dev, u32 qpn, u64 seq, u64 wr_id, u32 opcode,
		      u32 signalled, u32 length, u32 num_sge),
	     TP_ARGS(dev, qpn, seq, wr_id, opcode, signalled, length, num_sge)
);

TRACE_EVENT(cq_create,
	    TP_PROTO(u32 dev, u32 cqn, u32 pid, u32 cqe, u32 mapped),
	    TP_ARGS(dev, cqn, pid, cqe, mapped),
	    TP_STRUCT__entry(__field(u32, dev)
			     __field(u32, cqn)
			     __field(u32, pid)
			     __field(u32, cqe)
			     __field(u32, mapped)),
	    TP_fast_assign(__entry->dev = dev;
			   __entry->cqn = cqn;
			   __entry->pid = pid;
			   __entry->cqe = cqe;
			   __entry->mapped = mapped;),
	    TP_printk("dev=%u cqn=%u pid=%u cqe=%u mapped=%u",
		      __entry->dev, __entry->cqn, __entry->pid, __entry->cqe,
		      __entry->mapped)
);

TRACE_EVENT(cq_destroy,
	    TP_PROTO(u32 dev, u32 cqn, u64 produced, u64 consumed),
	    TP_ARGS(dev, cqn, produced, consumed),
	    TP_STRUCT__entry(__field(u32, dev)
			     __field(u32, cqn)
			     __field(u64, produced)
			     __field(u64, consumed)),
	    TP_fast_assign(__entry->dev = dev;
			   __entry->cqn = cqn;
			   __entry->produced = produced;
			   __entry->consumed = consumed;),
	    TP_printk("dev=%u cqn=%u produced=%llu consumed=%llu",
		      __entry->dev, __entry->cqn, __entry->produced,
		      __entry->consumed)
);

TRACE_EVENT(cq_push,
	    TP_PROTO(u32 dev, u32 qpn, u64 seq, u64 wr_id, u32 opcode,
		     u32 signalled, u32 cqn, u32 status, u32 byte_len,
		     u64 produced, u64 consumed, u64 ring_first),
	    TP_ARGS(dev, qpn, seq, wr_id, opcode, signalled, cqn, status, byte_len,
		    produced, consumed, ring_first),
	    TP_STRUCT__entry(__field(u32, dev)
			     __field(u32, qpn)
			     __field(u64, seq)
			     __field(u64, wr_id)
			     __field(u32, opcode)
			     __field(u32, signalled)
			     __field(u32, cqn)
			     __field(u32, status)
			     __field(u32, byte_len)
			     __field(u64, produced)
			     __field(u64, consumed)
			     __field(u64, ring_first)),
	    TP_fast_assign(__entry->dev = dev;
			   __entry->qpn = qpn;
			   __entry->seq = seq;
			   __entry->wr_id = wr_id;
			   __entry->opcode = opcode;
			   __entry->signalled = signalled;
			   __entry->cqn = cqn;
			   __entry->status = status;
			   __entry->byte_len = byte_len;
			   __entry->produced = produced;
			   __entry->consumed = consumed;
			   __entry->ring_first = ring_first;),
	    TP_printk("dev=%u qpn=%u seq=%llu wr_id=%#llx opcode=%u signalled=%u cqn=%u status=%u byte_len=%u produced=%llu consumed=%llu ring_first=%llu",
		      __entry->dev, __entry->qpn, __entry->seq, __entry->wr_id,
		      __entry->opcode, __entry->signalled, __entry->cqn,
		      __entry->status, __entry->byte_len, __entry->produced,
		      __entry->consumed, __entry->ring_first)
);

TRACE_EVENT(cq_poll,
	    TP_PROTO(u32 dev, u32 cqn, u32 asked, u32 returned, u64 produced,
		     u64 consumed, u64 ring_first),
	    TP_ARGS(dev, cqn, asked, returned, produced, consumed,
		    ring_first),
	    TP_STRUCT__entry(__field(u32, dev)
			     __field(u32, cqn)
			     __field(u32, asked)
			     __field(u32, returned)
			     __field(u64, produced)
			     __field(u64, consumed)
			     __field(u64, ring_first)),
	    TP_fast_assign(__entry->dev = dev;
			   __entry->cqn = cqn;
			   __entry->asked = asked;
			   __entry->returned = returned;
			   __entry->produced = produced;
			   __entry->consumed = consumed;
			   __entry->ring_first = ring_first;),
	    TP_printk("dev=%u cqn=%u asked=%u returned=%u produced=%llu consumed=%llu ring_first=%llu",
		      __entry->dev, __entry->cqn, __entry->asked,
		      __entry->returned, __entry->produced, __entry->consumed,
		      __entry->ring_first)
);

TRACE_EVENT(cq_purge,
	    TP_PROTO(u32 dev, u32 cqn, u32 qpn, u32 purged, u64 produced,
		     u64 consumed, u64 ring_first),
	    TP_ARGS(dev, cqn, qpn, purged, produced, consumed, ring_first),
	    TP_STRUCT__entry(__field(u32, dev)
			     __field(u32, cqn)
			     __field(u32, qpn)
			     __field(u32, purged)
			     __field(u64, produced)
			     __field(u64, consumed)
			     __field(u64, ring_first)),
	    TP_fast_assign(__entry->dev = dev;
			   __entry->cqn = cqn;
			   __entry->qpn = qpn;
			   __entry->purged = purged;
			   __entry->produced = produced;
			   __entry->consumed = consumed;
			   __entry->ring_first = ring_first;),
	    TP_printk("dev=%u cqn=%u qpn=%u purged=%u produced=%llu consumed=%llu ring_first=%llu",
		      __entry->dev, __entry->cqn, __entry->qpn,
		      __entry->purged, __entry->produced, __entry->consumed,
		      __entry->ring_first)
);

TRACE_EVENT(cq_arm,
	    TP_PROTO(u32 dev, u32 cqn, u32 solicited_only, u32 missed,
		     u64 produced, u64 consumed),
	    TP_ARGS(dev, cqn, solicited_only, missed, produced, consumed),
	    TP_STRUCT__entry(__field(u32, dev)
			     __field(u32, cqn)
			     __field(u32, solicited_only)
			     __field(u32, missed)
			     __field(u64, produced)
			     __field(u64, consumed)),
	    TP_fast_assign(__entry->dev = dev;
			   __entry->cqn = cqn;
			   __entry->solicited_only = solicited_only;
			   __entry->missed = missed;
			   __entry->produced = produced;
			   __entry->consumed = consumed;),
	    TP_printk("dev=%u cqn=%u solicited_only=%u missed=%u produced=%llu consumed=%llu",
		      __entry->dev, __entry->cqn, __entry->solicited_only,
		      __entry->missed, __entry->produced, __entry->consumed)
);

TRACE_EVENT(cq_overflow,
	    TP_PROTO(u32 dev, u32 cqn, u32 qpn, u64 seq, u64 wr_id, u64 produced,
		     u64 consumed, u64 overflows, u32 opcode, u32 signalled),
	    TP_ARGS(dev, cqn, qpn, seq, wr_id, produced, consumed, overflows,
		    opcode, signalled),
	    TP_STRUCT__entry(__field(u32, dev)
			     __field(u32, cqn)
			     __field(u32, qpn)
			     __field(u64, seq)
			     __field(u64, wr_id)
			     __field(u64, produced)
			     __field(u64, consumed)
			     __field(u64, overflows)
			     __field(u32, opcode)
			     __field(u32, signalled)),
	    TP_fast_assign(__entry->dev = dev;
			   __entry->cqn = cqn;
			   __entry->qpn = qpn;
			   __entry->seq = seq;
			   __entry->wr_id = wr_id;
			   __entry->produced = produced;
			   __entry->consumed = consumed;
			   __entry->overflows = overflows;
			   __entry->opcode = opcode;
			   __entry->signalled = signalled;),
	    TP_printk("dev=%u cqn=%u qpn=%u seq=%llu wr_id=%#llx produced=%llu consumed=%llu overflows=%llu opcode=%u signalled=%u",
		      __entry->dev, __entry->cqn, __entry->qpn, __entry->seq,
		      __entry->wr_id, __entry->produced, __entry->consumed,
		      __entry->overflows, __entry->opcode,
		      __entry->signalled)
);

TRACE_EVENT(rx_copy,
	    TP_PROTO(u32 dev, u32 qpn, u32 psn, u32 offset, u32 bytes),
	    TP_ARGS(dev, qpn, psn, offset, bytes),
	    TP_STRUCT__entry(__field(u32, dev)
			     __field(u32, qpn)
			     __field(u32, psn)
			     __field(u32, offset)
			     __field(u32, bytes)),
	    TP_fast_assign(__entry->dev = dev;
			   __entry->qpn = qpn;
			   __entry->psn = psn;
			   __entry->offset = offset;
			   __entry->bytes = bytes;),
	    TP_printk("dev=%u qpn=%u psn=%#x offset=%u bytes=%u",
		      __entry->dev, __entry->qpn, __entry->psn, __entry->offset,
		      __entry->bytes)
);

DECLARE_EVENT_CLASS(tbv_frame,
		    TP_PROTO(u32 dev, u32 qpn, u32 opcode, u32 flags, u32 psn,
			     u32 path_seq, u32 payload, u32 path),
		    TP_ARGS(dev, qpn, opcode, flags, psn, path_seq, payload, path),
		    TP_STRUCT__entry(__field(u32, dev)
				     __field(u32, qpn)
				     __field(u32, opcode)
				     __field(u32, flags)
				     __field(u32, psn)
				     __field(u32, path_seq)
				     __field(u32, payload)
				     __field(u32, path)),
		    TP_fast_assign(__entry->dev = dev;
				   __entry->qpn = qpn;
				   __entry->opcode = opcode;
				   __entry->flags = flags;
				   __entry->psn = psn;
				   __entry->path_seq = path_seq;
				   __entry->payload = payload;
				   __entry->path = path;),
		    TP_printk("dev=%u qpn=%u opcode=%u flags=%#x psn=%#x path_seq=%u payload=%u path=%u",
			      __entry->dev, __entry->qpn, __entry->opcode, __entry->flags,
			      __entry->psn, __entry->path_seq, __entry->payload,
			      __entry->path)
);

DEFINE_EVENT(tbv_frame, tx_frame,
	     TP_PROTO(u32 dev, u32 qpn, u32 opcode, u32 flags, u32 psn,
		      u32 path_seq, u32 payload, u32 path),
	     TP_ARGS(dev, qpn, opcode, flags, psn, path_seq, payload, path)
);

DEFINE_EVENT(tbv_frame, rx_frame,
	     TP_PROTO(u32 dev, u32 qpn, u32 opcode, u32 flags, u32 psn,
		      u32 path_seq, u32 payload, u32 path),
	     TP_ARGS(dev, qpn, opcode, flags, psn, path_seq, payload, path)
);

TRACE_EVENT(ack,
	    TP_PROTO(u32 dev, u32 qpn, u32 received, u32 psn, u32 syndrome),
	    TP_ARGS(dev, qpn, received, psn, syndrome),
	    TP_STRUCT__entry(__field(u32, dev)
			     __field(u32, qpn)
			     __field(u32, received)
			     __field(u32, psn)
			     __field(u32, syndrome)),
	    TP_fast_assign(__entry->dev = dev;
			   __entry->qpn = qpn;
			   __entry->received = received;
			   __entry->psn = psn;
			   __entry->syndrome = syndrome;),
	    TP_printk("dev=%u qpn=%u received=%u psn=%#x syndrome=%u",
		      __entry->dev, __entry->qpn, __entry->received, __entry->psn,
		      __entry->syndrome)
);

TRACE_EVENT(retransmit,
	    TP_PROTO(u32 dev, u32 qpn, u32 psn, u32 reason, u32 retries),
	    TP_ARGS(dev, qpn, psn, reason, retries),
	    TP_STRUCT__entry(__field(u32, dev)
			     __field(u32, qpn)
			     __field(u32, psn)
			     __field(u32, reason)
			     __field(u32, retries)),
	    TP_fast_assign(__entry->dev = dev;
			   __entry->qpn = qpn;
			   __entry->psn = psn;
			   __entry->reason = reason;
			   __entry->retries = retries;),
	    TP_printk("dev=%u qpn=%u psn=%#x reason=%u retries=%u",
		      __entry->dev, __entry->qpn, __entry->psn, __entry->reason,
		      __entry->retries)
);

TRACE_EVENT(rnr,
	    TP_PROTO(u32 dev, u32 qpn, u32 received, u32 psn, u32 timer,
		     u32 retries),
	    TP_ARGS(dev, qpn, received, psn, timer, retries),
	    TP_STRUCT__entry(__field(u32, dev)
			     __field(u32, qpn)
			     __field(u32, received)
			     __field(u32, psn)
			     __field(u32, timer)
			     __field(u32, retries)),
	    TP_fast_assign(__entry->dev = dev;
			   __entry->qpn = qpn;
			   __entry->received = received;
			   __entry->psn = psn;
			   __entry->timer = timer;
			   __entry->retries = retries;),
	    TP_printk("dev=%u qpn=%u received=%u psn=%#x timer=%u retries=%u",
		      __entry->dev, __entry->qpn, __entry->received, __entry->psn,
		      __entry->timer, __entry->retries)
);

TRACE_EVENT(credit_stall,
	    TP_PROTO(u32 dev, u32 qpn, u32 path, u32 credits, u32 free_slots),
	    TP_ARGS(dev, qpn, path, credits, free_slots),
	    TP_STRUCT__entry(__field(u32, dev)
			     __field(u32, qpn)
			     __field(u32, path)
			     __field(u32, credits)
			     __field(u32, free_slots)),
	    TP_fast_assign(__entry->dev = dev;
			   __entry->qpn = qpn;
			   __entry->path = path;
			   __entry->credits = credits;
			   __entry->free_slots = free_slots;),
	    TP_printk("dev=%u qpn=%u path=%u credits=%u free_slots=%u",
		      __entry->dev, __entry->qpn, __entry->path, __entry->credits,
		      __entry->free_slots)
);

TRACE_EVENT(qp_state,
	    TP_PROTO(u32 dev, u32 qpn, u32 from, u32 to, u32 pid),
	    TP_ARGS(dev, qpn, from, to, pid),
	    TP_STRUCT__entry(__field(u32, dev)
			     __field(u32, qpn)
			     __field(u32, from)
			     __field(u32, to)
			     __field(u32, pid)),
	    TP_fast_assign(__entry->dev = dev;
			   __entry->qpn = qpn;
			   __entry->from = from;
			   __entry->to = to;
			   __entry->pid = pid;),
	    TP_printk("dev=%u qpn=%u from=%u to=%u pid=%u",
		      __entry->dev, __entry->qpn, __entry->from, __entry->to,
		      __entry->pid)
);

TRACE_EVENT(mr_reg,
	    TP_PROTO(u32 dev, u32 lkey, u64 iova, u64 length, u32 access, u32 pid),
	    TP_ARGS(dev, lkey, iova, length, access, pid),
	    TP_STRUCT__entry(__field(u32, dev)
			     __field(u32, lkey)
			     __field(u64, iova)
			     __field(u64, length)
			     __field(u32, access)
			     __field(u32, pid)),
	    TP_fast_assign(__entry->dev = dev;
			   __entry->lkey = lkey;
			   __entry->iova = iova;
			   __entry->length = length;
			   __entry->access = access;
			   __entry->pid = pid;),
	    TP_printk("dev=%u lkey=%#x iova=%#llx length=%llu access=%#x pid=%u",
		      __entry->dev, __entry->lkey, __entry->iova, __entry->length,
		      __entry->access, __entry->pid)
);

TRACE_EVENT(mr_dereg,
	    TP_PROTO(u32 dev, u32 lkey, u64 length, u32 pid),
	    TP_ARGS(dev, lkey, length, pid),
	    TP_STRUCT__entry(__field(u32, dev)
			     __field(u32, lkey)
			     __field(u64, length)
			     __field(u32, pid)),
	    TP_fast_assign(__entry->dev = dev;
			   __entry->lkey = lkey;
			   __entry->length = length;
			   __entry->pid = pid;),
	    TP_printk("dev=%u lkey=%#x length=%llu pid=%u",
		      __entry->dev, __entry->lkey, __entry->length, __entry->pid)
);

TRACE_EVENT(link_state,
	    TP_PROTO(u32 dev, u32 path, u32 up),
	    TP_ARGS(dev, path, up),
	    TP_STRUCT__entry(__field(u32, dev)
			     __field(u32, path)
			     __field(u32, up)),
	    TP_fast_assign(__entry->dev = dev;
			   __entry->path = path;
			   __entry->up = up;),
	    TP_printk("dev=%u path=%u up=%u",
		      __entry->dev, __entry->path, __entry->up)
);

#endif /* TBV_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
