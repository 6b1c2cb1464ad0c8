/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What functions.rs and context.rs declare, as C: compiled after rdma-core's
 * headers, where a declaration that differs is an error.  CQ is ibv_cq, or
 * something else to see that differences are found.
 */
void verbs_register_driver_34(const struct verbs_device_ops *ops);
void *_verbs_init_and_alloc_context(struct ibv_device *device, int cmd_fd,
				    size_t alloc_size,
				    struct verbs_context *context_offset,
				    uint32_t driver_id);
void verbs_uninit_context(struct verbs_context *context);
void verbs_set_ops(struct verbs_context *context,
		   const struct verbs_context_ops *ops);
int ibv_cmd_get_context(struct verbs_context *context,
			struct ibv_get_context *cmd, size_t cmd_size,
			struct ib_uverbs_get_context_resp *resp,
			size_t resp_size);
int ibv_cmd_query_device_any(struct ibv_context *context,
			     const struct ibv_query_device_ex_input *input,
			     struct ibv_device_attr_ex *attr, size_t attr_size,
			     struct ib_uverbs_ex_query_device_resp *resp,
			     size_t *resp_size);
int ibv_cmd_query_port(struct ibv_context *context, uint8_t port_num,
		       struct ibv_port_attr *attr, struct ibv_query_port *cmd,
		       size_t cmd_size);
int ibv_cmd_alloc_pd(struct ibv_context *context, struct ibv_pd *pd,
		     struct ibv_alloc_pd *cmd, size_t cmd_size,
		     struct ib_uverbs_alloc_pd_resp *resp, size_t resp_size);
int ibv_cmd_dealloc_pd(struct ibv_pd *pd);
int ibv_cmd_reg_mr(struct ibv_pd *pd, void *addr, size_t length,
		   uint64_t hca_va, int access, struct verbs_mr *mr,
		   struct ibv_reg_mr *cmd, size_t cmd_size,
		   struct ib_uverbs_reg_mr_resp *resp, size_t resp_size);
int ibv_cmd_dereg_mr(struct verbs_mr *mr);
int ibv_cmd_create_cq(struct ibv_context *context, int cqe,
		      struct ibv_comp_channel *channel, int comp_vector,
		      struct CQ *cq, struct ibv_create_cq *cmd,
		      size_t cmd_size, struct ib_uverbs_create_cq_resp *resp,
		      size_t resp_size);
int ibv_cmd_poll_cq(struct CQ *cq, int num_entries, struct ibv_wc *wc);
int ibv_cmd_req_notify_cq(struct CQ *cq, int solicited_only);
int ibv_cmd_destroy_cq(struct CQ *cq);
int ibv_cmd_create_qp(struct ibv_pd *pd, struct ibv_qp *qp,
		      struct ibv_qp_init_attr *attr, struct ibv_create_qp *cmd,
		      size_t cmd_size, struct ib_uverbs_create_qp_resp *resp,
		      size_t resp_size);
int ibv_cmd_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask,
		     struct ibv_qp_init_attr *init_attr,
		     struct ibv_query_qp *cmd, size_t cmd_size);
int ibv_cmd_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr,
		      int attr_mask, struct ibv_modify_qp *cmd,
		      size_t cmd_size);
int ibv_cmd_destroy_qp(struct ibv_qp *qp);
int ibv_cmd_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
		      struct ibv_send_wr **bad_wr);
int ibv_cmd_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr,
		      struct ibv_recv_wr **bad_wr);

/* Operations and verbs: whether a function of our type can be assigned. */
#define MEMBER(of, result, name, ...)					\
	static inline void name##_is(struct of *ops,			\
				     result (*function)(__VA_ARGS__))	\
	{								\
		ops->name = function;					\
	}
#define OPERATION(result, name, ...) \
	MEMBER(verbs_device_ops, result, name, __VA_ARGS__)
#define VERB(result, name, ...) \
	MEMBER(verbs_context_ops, result, name, __VA_ARGS__)

OPERATION(bool, match_device, struct verbs_sysfs_dev *)
OPERATION(struct verbs_context *, alloc_context, struct ibv_device *, int,
	  void *)
OPERATION(struct verbs_device *, alloc_device, struct verbs_sysfs_dev *)
OPERATION(void, uninit_device, struct verbs_device *)

VERB(struct ibv_pd *, alloc_pd, struct ibv_context *)
VERB(int, dealloc_pd, struct ibv_pd *)
VERB(struct ibv_cq *, create_cq, struct ibv_context *, int,
     struct ibv_comp_channel *, int)
VERB(struct ibv_cq_ex *, create_cq_ex, struct ibv_context *,
     struct ibv_cq_init_attr_ex *)
VERB(int, destroy_cq, struct CQ *)
VERB(int, poll_cq, struct CQ *, int, struct ibv_wc *)
VERB(int, req_notify_cq, struct CQ *, int)
VERB(struct ibv_qp *, create_qp, struct ibv_pd *, struct ibv_qp_init_attr *)
VERB(int, modify_qp, struct ibv_qp *, struct ibv_qp_attr *, int)
VERB(int, query_qp, struct ibv_qp *, struct ibv_qp_attr *, int,
     struct ibv_qp_init_attr *)
VERB(int, destroy_qp, struct ibv_qp *)
VERB(int, post_send, struct ibv_qp *, struct ibv_send_wr *,
     struct ibv_send_wr **)
VERB(int, post_recv, struct ibv_qp *, struct ibv_recv_wr *,
     struct ibv_recv_wr **)
VERB(struct ibv_mr *, reg_mr, struct ibv_pd *, void *, size_t, uint64_t, int)
VERB(int, dereg_mr, struct verbs_mr *)
VERB(void, free_context, struct ibv_context *)
VERB(int, query_device_ex, struct ibv_context *,
     const struct ibv_query_device_ex_input *, struct ibv_device_attr_ex *,
     size_t)
VERB(int, query_port, struct ibv_context *, uint8_t, struct ibv_port_attr *)
