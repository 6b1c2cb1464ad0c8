#!/bin/sh
# What `cargo xtask demo` runs in its guest: `ib_send_lat` over our driver's virtual cable under tbv-trace, with
# completions polled by system call and from memory in turn.
# Every run is a line of JSON on standard output: which files were meant and which were used, and tbv-trace's report.
# Usage: sh guest.sh ITERATIONS ROUNDS
set -e
iterations=$1
rounds=$2
# tbv-trace shows the command that it runs: from here, that is short.
cd "$(dirname "$0")"
ci=../../../ci
hash() { sha256sum "$1" | cut -d' ' -f1; }

provider=$(ls "$IBV_DRIVERS"-rdmav*.so)
meant="\"module\":\"$(modinfo -F srcversion "$TBV_KMOD")\",\"provider\":\"$(hash "$provider")\""
export LOADED_PROVIDER=/tmp/provider

round=1
while [ "$round" -le "$rounds" ]; do
    # Each arm comes first in every other round.
    [ $((round % 2)) = 1 ] && arms="ioctl mapped" || arms="mapped ioctl"
    for arm in $arms; do
        report=/tmp/$arm.json
        USB4_RDMA_CQ=$arm tbv-trace run --strict -f jsonl -o "$report" -- \
            sh both-sides.sh usb4_rdma0 usb4_rdma1 127.0.0.1 "$iterations" >&2
        # That the work was done, and completions polled in that way.
        tbv-trace check "$report" --strict --budget "$ci/$arm.toml" --iterations "$iterations" >/tmp/check || {
            cat /tmp/check >&2
            exit 1
        }
        printf '{"arm":"%s","round":%s,"meant":{%s},"loaded":"%s","report":%s}\n' \
            "$arm" "$round" "$meant" "$(hash "$(cat "$LOADED_PROVIDER")")" "$(cat "$report")"
    done
    round=$((round + 1))
done
