#!/bin/sh
# Throughput of ib_send_bw by number of queue pairs and message size, with completions polled by system call and from
# memory in turn. A line a run: ARM QPS BYTES MIB_PER_SECOND
# Usage: sh sweep.sh ROUNDS
set -e
run() {
    ib_send_bw -F -d usb4_rdma0 -q "$1" -s "$2" -n "$3" >/dev/null &
    server=$!
    # 4853 is port 18515, 0A is LISTEN.
    until grep -q ":4853 0*:0000 0A " /proc/net/tcp /proc/net/tcp6; do
        kill -0 $server || exit 2
        sleep 0.05
    done
    # The average is the fourth column of the line that begins with the size.
    ib_send_bw -F -d usb4_rdma1 -q "$1" -s "$2" -n "$3" 127.0.0.1 | awk -v s="$2" '$1 == s { print $4 }'
    wait $server
}

round=1
while [ "$round" -le "$1" ]; do
    for qps in 1 2 4 8; do
        for bytes in 65536 262144 1048576; do
            [ $((round % 2)) = 1 ] && arms="ioctl mapped" || arms="mapped ioctl"
            for arm in $arms; do
                export USB4_RDMA_CQ=$arm
                # As many bytes in every run.
                echo "$arm $qps $bytes $(run $qps $bytes $((33554432 / bytes)))"
            done
        done
    done
    round=$((round + 1))
done
