//! Requests and responses of the `ibv_cmd_*` functions, which fill and read them: here only their sizes matter.

/// Declares buffers of a number of bytes, aligned as a word.
macro_rules! buffers {
    ($word:ty: $($name:ident: $bytes:literal,)*) => {$(
        #[repr(C)]
        pub(crate) struct $name([$word; $bytes / size_of::<$word>()]);

        impl $name {
            pub(crate) const ZERO: Self = Self([0; $bytes / size_of::<$word>()]);
        }
    )*};
}

buffers! {
    u32:
    ib_uverbs_alloc_pd_resp: 4,
    ib_uverbs_create_qp_resp: 32,
    ib_uverbs_reg_mr_resp: 12,
}

buffers! {
    u64:
    ib_uverbs_create_cq_resp: 8,
    ib_uverbs_get_context_resp: 8,
    ibv_alloc_pd: 16,
    ibv_create_cq: 40,
    ibv_create_qp: 64,
    ibv_get_context: 16,
    ibv_modify_qp: 120,
    ibv_query_port: 24,
    ibv_query_qp: 24,
    ibv_reg_mr: 48,
}

/// The answer to QUERY_DEVICE, of which the provider reads the firmware version.
#[repr(C)]
pub(crate) struct ib_uverbs_ex_query_device_resp {
    pub(crate) fw_ver: u64,
    rest: [u64; 37],
}

impl ib_uverbs_ex_query_device_resp {
    pub(crate) const ZERO: Self = Self { fw_ver: 0, rest: [0; 37] };
}
