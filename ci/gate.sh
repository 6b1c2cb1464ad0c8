#!/bin/sh
# The gate: both sides of ib_send_lat over our driver's virtual cable, under tbv-trace, judged by a budget of this
# folder. As root, where tbv-trace is in PATH and the module is loaded: cargo xtask vm -- sh ci/gate.sh mapped
# Usage: sh gate.sh mapped|ioctl [ITERATIONS [OPTION OF tbv-trace check]...]
set -e
arm=$1
case $arm in
mapped | ioctl) ;;
*)
    echo "usage: sh gate.sh mapped|ioctl [ITERATIONS [OPTION of tbv-trace check]...]" >&2
    exit 2
    ;;
esac
iterations=${2:-1000}
[ $# -lt 2 ] || shift
shift
folder=$(cd "$(dirname "$0")" && pwd)
report=$(mktemp)
trap 'rm -f "$report"' EXIT
export USB4_RDMA_CQ="$arm"
tbv-trace run --strict -f json -o "$report" -- \
    sh "$folder/../xtask/src/demo/both-sides.sh" usb4_rdma0 usb4_rdma1 127.0.0.1 "$iterations"
tbv-trace check "$report" --strict --budget "$folder/$arm.toml" --iterations "$iterations" "$@"
