#!/bin/sh
# What `cargo xtask demo` runs in its guest: `ib_send_lat` under tbv-trace, first on a software RDMA
# device of the stock kernel, then over our own driver's virtual cable.
# Usage: sh guest.sh ITERATIONS
set -e
iterations=$1
# tbv-trace shows the command that it runs: from here, that is short.
cd "$(dirname "$0")"

modprobe rdma_rxe
ip link add d0 type dummy
ip addr add 10.9.9.1/24 dev d0
ip link set d0 up
rdma link add rxe0 type rxe netdev d0

# The tables come on stderr, as ib_send_lat may have stdout; here they are the result.
traced() {
    tbv-trace run --strict --iterations "$iterations" -- sh both-sides.sh "$@" "$iterations" 2>&1
}

echo "== rdma_rxe, both sides on rxe0"
traced rxe0 rxe0 10.9.9.1
echo
echo "== thunderbolt_ibverbs, usb4_rdma0 and usb4_rdma1 on a virtual cable"
traced usb4_rdma0 usb4_rdma1 127.0.0.1
