#!/bin/sh
# Both sides of ib_send_lat over our driver's virtual cable, again and again, with completions polled by system call and
# from memory in turn. In the guest of `cargo xtask top`.
cd "$(dirname "$0")" || exit 1
while :; do
    for arm in ioctl mapped; do
        USB4_RDMA_CQ=$arm sh ../demo/both-sides.sh usb4_rdma0 usb4_rdma1 127.0.0.1 "${1:-1000}" || sleep 1
    done
done
