/* SPDX-License-Identifier: GPL-2.0 */
/*
 * thunderbolt_ibverbs: the objects and who calls whom.
 *
 *   post.c    work requests come in        qp*.c   QP life and states
 *   req.c     requester: frames go out     retry.c timers and going back
 *   resp.c    responder: messages come in  reply.c acknowledgements, NAKs, RNRs
 *   rx.c      a received frame finds its QP
 *   cq.c      completions, in a ring (cq_ring.c) that mmap.c lets a process map
 *   path.c    slots and waiting QPs        credit.c how much the peer can take
 *   ring.h    what a transport is          loop.c  a virtual cable, with fault.c
 *
 * Lock order, outermost first; all are spinlocks taken with softirqs off, the
 * CQ lock with interrupts off:
 *
 *   1. tbv_qp.lock      one QP at a time
 *   2. tbv_path.lock
 *   3. loop cable lock  (below the ring interface)
 *   2. tbv_cq.lock      under a QP lock or alone, never with a path lock
 *   leaves, nothing taken under them: tbv_dev.qps and .mrs xarray locks,
 *   tbv_dev.stub_lock
 *
 * Callbacks from a ring come without any lock. Posting to a ring never calls
 * back, so frames are posted under the QP lock; that is what keeps concurrent
 * posters in order.
 */
#ifndef TBV_H
#define TBV_H

#include <linux/completion.h>
#include <linux/refcount.h>
#include <linux/spinlock.h>
#include <linux/timer.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>
#include <rdma/uverbs_ioctl.h>

#include "compat.h"
#include "counters.h"
#include "cq_ring.h"
#include "mmap.h"
#include "ring.h"
#include "usb4_rdma_abi.h"
#include "wire.h"

/* Limits, as advertised and enforced. */
#define TBV_MAX_PD		4096
#define TBV_MAX_MR		65536
#define TBV_MAX_MR_SIZE		BIT_ULL(40)
#define TBV_MAX_CQ		4096
#define TBV_MAX_CQE		131072
#define TBV_MAX_QP		4096
#define TBV_MAX_QP_WR		8192
#define TBV_MAX_SGE		16
#define TBV_MAX_INLINE		512
#define TBV_MAX_RD_ATOMIC	16

/* QPNs below this have a meaning of their own in InfiniBand. */
#define TBV_QPN_MIN		16
#define TBV_QPN_MAX		(TBV_WIRE_24BIT - 1)

/* Not a PSN, and not an ib_qp_state. */
#define TBV_PSN_NONE		U32_MAX
#define TBV_QPS_DESTROYED	255

/* Descriptors of a ring, and how many of them only control frames may take. */
#define TBV_RING_SLOTS		256
#define TBV_CONTROL_RESERVE	32

/* How long a QP waits for credit before the path asks for it. */
#define TBV_STALL_JIFFIES	(HZ / 10)

struct tbv_dev;
struct tbv_path;

enum tbv_path_id {
	TBV_PATH_CABLE,		/* to the peer */
	TBV_PATH_SELF,		/* from this device to itself, by its own LID */
	TBV_N_PATHS
};

enum tbv_frame_class {
	TBV_FRAME_DATA,		/* leaves a reserve */
	TBV_FRAME_CONTROL,	/* may use the reserve */
	TBV_FRAME_PROBE,	/* needs no credit; may be lost */
};

/*
 * What a completion points to for its QP number. It outlives the QP: stubs are
 * recycled in order of release and freed with the device.
 */
struct tbv_qp_stub {
	struct ib_qp qp;
	struct list_head node;
};

struct tbv_ucontext {
	struct ib_ucontext base;
};

struct tbv_pd {
	struct ib_pd base;
};

struct tbv_mr {
	struct ib_mr base;
	struct ib_umem *umem;
	struct page **pages;
	u64 iova;
	u64 length;
	int access;
	refcount_t refs;
	struct completion idle;
	struct rcu_head rcu;
};

struct tbv_cq {
	struct ib_cq base;
	spinlock_t lock;	/* all below but @cqn and the mappings */
	struct tbv_cq_ring ring;
	struct ib_wc *wc;	/* as many as the ring has slots */
	u64 overflows_told;	/* to who polls by system call */
	const void *empty_for;	/* the task that found nothing; a mark only */
	u32 cqn;
	bool armed;
	bool armed_solicited;
	struct tbv_mmap_entry *ring_map;	/* NULL if not published */
	struct tbv_mmap_entry *consumer_map;
};

struct tbv_send_wqe {
	u64 wr_id;
	u64 seq;
	u32 length;
	u32 first_psn;
	u32 frames;
	u32 imm;
	u8 wire_opcode;
	u8 num_sge;
	bool signalled;
	bool solicited;
	bool is_inline;
};

struct tbv_recv_wqe {
	u64 wr_id;
	u64 seq;
	u32 length;
	u8 num_sge;
};

/*
 * Send queue and requester. Indices run freely: tail <= cur <= head.
 * tail is the oldest request not acknowledged, cur the one being sent.
 */
struct tbv_sq {
	struct tbv_send_wqe *wqe;
	struct ib_sge *sge;
	u8 *inline_data;
	u32 size;
	u32 mask;
	u32 max_sge;
	u32 max_inline;
	u32 tail;
	u32 cur;
	u32 head;
	u32 cur_offset;		/* bytes of cur that are sent */
	u32 post_psn;		/* for the next work request */
	u32 next_psn;		/* of the next frame */
	u32 max_psn;		/* one past the highest PSN ever sent */
	u32 una_psn;		/* oldest PSN not acknowledged */
	u32 nak_psn;		/* last PSN sending went back to on a NAK */
	u64 seq;
	u8 retries;
	u8 rnr_retries;
	bool rnr_wait;
	enum ib_wc_status fault;	/* why cur cannot be sent */
	unsigned long deadline;
	struct timer_list timer;
};

struct tbv_rq {
	struct tbv_recv_wqe *wqe;
	struct ib_sge *sge;
	u32 size;
	u32 mask;
	u32 max_sge;
	u32 tail;
	u32 head;
	u64 seq;
};

/* Responder: which PSN comes next, and the message it belongs to. */
struct tbv_resp {
	u32 psn;
	u32 total_len;
	u32 offset;
	u8 opcode;
	bool in_message;
	bool nak_sent;
	bool established;
	u8 reply;		/* enum tbv_wire_syndrome still to be sent */
};

struct tbv_qp {
	struct ib_qp base;
	spinlock_t lock;	/* all below, unless it says otherwise */
	struct tbv_dev *dev;
	struct tbv_path *path;
	struct tbv_qp_stub *stub;
	u32 qpn;
	enum ib_qp_state state;
	bool sig_all;
	struct ib_qp_attr attr;
	struct tbv_sq sq;
	struct tbv_rq rq;
	struct tbv_resp resp;
	struct list_head wait_node;	/* path lock */
	bool waiting;			/* path lock */
	refcount_t refs;
	struct completion idle;
};

/**
 * struct tbv_path - frames between this device and one destination
 * @tx: ring to send on
 * @rx: ring to receive from
 * @lock: all below
 * @free: transmit frames nobody uses
 * @reserved: frames handed out and not yet sent
 * @tx_seq: path_seq of the next frame
 * @tx_limit: first path_seq the peer has no descriptor for
 * @rx_seq: one past the highest path_seq seen
 * @rx_limit: what the peer was told
 * @credit_wanted: tell the peer the limit
 * @stopping: no frame is handed out any more
 * @waiters: QPs that have something to send
 * @serving: the one whose turn it is
 * @wake_work: gives the waiters their turns
 * @stall_timer: runs while anyone waits
 * @frames: all of them, for sending and receiving
 * @frame_count: of @frames
 */
struct tbv_path {
	struct tbv_dev *dev;
	enum tbv_path_id id;
	struct tbv_ring *tx;
	struct tbv_ring *rx;
	spinlock_t lock; /* see above */
	struct list_head free;
	u32 free_count;
	u32 reserved;
	u32 tx_seq;
	u32 tx_limit;
	u32 rx_seq;
	u32 rx_limit;
	bool credit_wanted;
	bool stopping;
	struct list_head waiters;
	struct tbv_qp *serving;
	struct work_struct wake_work;
	struct timer_list stall_timer;
	struct tbv_frame *frames;
	unsigned int frame_count;
};

struct tbv_dev {
	struct ib_device ibdev;
	u32 index;
	u16 lid;
	u16 peer_lid;
	bool link_up;
	bool leaving;		/* is being unregistered */
	struct tbv_counters __percpu *counters;
	struct tbv_path path[TBV_N_PATHS];
	struct xarray qps;
	u32 next_qpn;
	struct xarray mrs;
	atomic_t next_cqn;
	u64 cq_first;		/* where totals of new CQs begin */
	spinlock_t stub_lock;	/* stubs */
	struct list_head stubs;
	u32 stub_count;
	atomic_t n_contexts;
	atomic_t n_pds;
	atomic_t n_mrs;
	atomic_t n_cqs;
	atomic_t n_qps;
	struct dentry *debugfs;
};

static inline struct tbv_dev *to_tbv_dev(struct ib_device *ibdev)
{
	return container_of(ibdev, struct tbv_dev, ibdev);
}

static inline struct tbv_cq *to_tbv_cq(struct ib_cq *ibcq)
{
	return container_of(ibcq, struct tbv_cq, base);
}

static inline struct tbv_qp *to_tbv_qp(struct ib_qp *ibqp)
{
	return container_of(ibqp, struct tbv_qp, base);
}

static inline struct tbv_mr *to_tbv_mr(struct ib_mr *ibmr)
{
	return container_of(ibmr, struct tbv_mr, base);
}

/* Count an object against its limit. */
static inline int tbv_object_get(atomic_t *count, int max)
{
	return atomic_add_unless(count, 1, max) ? 0 : -ENOMEM;
}

/* main.c: softirq work, in the context of whoever queued it */
extern struct workqueue_struct *tbv_bh_wq;

/* device.c */
struct tbv_dev *tbv_dev_alloc(u32 index, u16 lid, u16 peer_lid);
void tbv_dev_free(struct tbv_dev *dev);
int tbv_dev_register(struct tbv_dev *dev);
void tbv_dev_unregister(struct tbv_dev *dev);
void tbv_dev_set_link(struct tbv_dev *dev, bool up);

/* port.c */
int tbv_query_device(struct ib_device *ibdev, struct ib_device_attr *attr,
		     struct ib_udata *udata);
int tbv_query_port(struct ib_device *ibdev, u32 port,
		   struct ib_port_attr *attr);
int tbv_get_port_immutable(struct ib_device *ibdev, u32 port,
			   struct ib_port_immutable *immutable);
int tbv_query_gid(struct ib_device *ibdev, u32 port, int index,
		  union ib_gid *gid);
int tbv_query_pkey(struct ib_device *ibdev, u32 port, u16 index, u16 *pkey);
enum rdma_link_layer tbv_get_link_layer(struct ib_device *ibdev, u32 port);
void tbv_get_dev_fw_str(struct ib_device *ibdev, char *str);

/* pd.c */
int tbv_alloc_ucontext(struct ib_ucontext *ctx, struct ib_udata *udata);
void tbv_dealloc_ucontext(struct ib_ucontext *ctx);
void tbv_disassociate_ucontext(struct ib_ucontext *ctx);
int tbv_alloc_pd(struct ib_pd *pd, struct ib_udata *udata);
int tbv_dealloc_pd(struct ib_pd *pd, struct ib_udata *udata);

/* mr.c */
struct ib_mr *tbv_reg_user_mr(struct ib_pd *pd, u64 start, u64 length,
			      u64 iova, int access, TBV_DMAH_ARG
			      struct ib_udata *udata);
int tbv_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata);
struct tbv_mr *tbv_mr_get(struct tbv_dev *dev, struct ib_pd *pd, u32 key,
			  u64 addr, u64 length, int access);
void tbv_mr_put(struct tbv_mr *mr);
void tbv_mr_copy(struct tbv_mr *mr, u64 addr, void *buf, u32 length,
		 bool to_mr);

/* sge.c */
int tbv_sge_check(struct tbv_qp *qp, const struct ib_sge *sge, u32 num_sge,
		  u64 length, int access);
int tbv_sge_copy(struct tbv_qp *qp, const struct ib_sge *sge, u32 num_sge,
		 u32 offset, void *buf, u32 length, bool to_sge);

/* cq.c */
int tbv_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		  struct uverbs_attr_bundle *attrs);
int tbv_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata);
int tbv_poll_cq(struct ib_cq *ibcq, int num_entries, struct ib_wc *wc);
int tbv_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags);
int tbv_fill_res_cq_entry(struct sk_buff *msg, struct ib_cq *ibcq);
void tbv_cq_push(struct tbv_cq *cq, const struct ib_wc *wc, u64 seq,
		 bool signalled, bool solicited);
void tbv_cq_purge(struct tbv_cq *cq, struct tbv_qp_stub *stub);

/* qp.c */
int tbv_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *init,
		  struct ib_udata *udata);
int tbv_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata);
struct tbv_qp *tbv_qp_get(struct tbv_dev *dev, u32 qpn);
void tbv_qp_put(struct tbv_qp *qp);

/* qp_modify.c */
int tbv_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		  struct ib_udata *udata);
int tbv_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		 struct ib_qp_init_attr *init);

/* qp_state.c; all with the QP locked */
void tbv_qp_set_state(struct tbv_qp *qp, enum ib_qp_state state);
void tbv_qp_reset(struct tbv_qp *qp);
void tbv_qp_error(struct tbv_qp *qp);
void tbv_qp_event(struct tbv_qp *qp, enum ib_event_type event);
void tbv_complete_send(struct tbv_qp *qp, enum ib_wc_status status);
void tbv_complete_recv(struct tbv_qp *qp, enum ib_wc_status status,
		       const struct tbv_wire_hdr *hdr);

/* post.c */
int tbv_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		  const struct ib_send_wr **bad_wr);
int tbv_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		  const struct ib_recv_wr **bad_wr);

/* req.c; with the QP locked */
void tbv_req_run(struct tbv_qp *qp);
void tbv_req_go_to(struct tbv_qp *qp, u32 psn);
void tbv_req_fail(struct tbv_qp *qp, enum ib_wc_status status);
void tbv_req_reply(struct tbv_qp *qp, const struct tbv_wire_hdr *hdr);

/* retry.c */
void tbv_retry_init(struct tbv_qp *qp);
void tbv_retry_shutdown(struct tbv_qp *qp);
void tbv_retry_start(struct tbv_qp *qp);
void tbv_retry_stop(struct tbv_qp *qp);
void tbv_retry_rnr(struct tbv_qp *qp, u32 psn, u8 rnr_timer);
void tbv_retry_sequence(struct tbv_qp *qp, u32 psn);

/* resp.c, reply.c; with the QP locked */
void tbv_resp_request(struct tbv_qp *qp, const struct tbv_wire_hdr *hdr,
		      void *payload);
void tbv_reply(struct tbv_qp *qp, enum tbv_wire_syndrome syndrome);
bool tbv_reply_run(struct tbv_qp *qp);

/* rx.c */
void tbv_rx_done(struct tbv_ring *ring, struct tbv_frame *frame,
		 bool canceled);

/* path.c */
int tbv_path_init(struct tbv_path *path, struct tbv_dev *dev,
		  enum tbv_path_id id, struct tbv_ring *tx,
		  struct tbv_ring *rx);
void tbv_path_stop(struct tbv_path *path);
struct tbv_frame *tbv_path_get(struct tbv_path *path, struct tbv_qp *qp,
			       enum tbv_frame_class class);
void tbv_path_put(struct tbv_path *path, struct tbv_frame *frame);
void tbv_path_send(struct tbv_path *path, struct tbv_frame *frame,
		   struct tbv_wire_hdr *hdr);
void tbv_path_yield(struct tbv_path *path, struct tbv_qp *qp);
void tbv_path_forget(struct tbv_path *path, struct tbv_qp *qp);
void tbv_path_wake_locked(struct tbv_path *path);

/* credit.c */
void tbv_credit_init(struct tbv_path *path);
u32 tbv_credit_left(const struct tbv_path *path);
bool tbv_credit_control(const struct tbv_path *path);
u32 tbv_credit_grant(struct tbv_path *path);
void tbv_credit_received(struct tbv_path *path, u32 limit);
void tbv_credit_reposted(struct tbv_path *path, u32 path_seq);
void tbv_credit_wanted(struct tbv_path *path);
void tbv_credit_run(struct tbv_path *path);

/* counters.c */
struct rdma_hw_stats *tbv_alloc_hw_port_stats(struct ib_device *ibdev,
					      u32 port);
int tbv_get_hw_stats(struct ib_device *ibdev, struct rdma_hw_stats *stats,
		     u32 port, int index);

/* debugfs.c */
struct dentry *tbv_debugfs_init(void);
void tbv_debugfs_exit(void);
void tbv_debugfs_add(struct tbv_dev *dev);
void tbv_debugfs_remove(struct tbv_dev *dev);

#endif /* TBV_H */
