#!/bin/sh
# What looking ten times a second takes of a processor while four processes call as fast as they can: by the live view,
# by the same without a screen, and by a recording. A line a run: ARM PERCENT
# Usage: sh load.sh ROUNDS
set -e
seconds=10

modprobe rdma_rxe
ip link add tbv0 type dummy 2>/dev/null || true
ip link set tbv0 up
rdma link show rxe0/1 >/dev/null 2>&1 || rdma link add rxe0 type rxe netdev tbv0
uverbs-raw --procs 4 --seconds 100000 --cases query-port,write-unknown,write >/dev/null &
callers=$!
trap 'kill $callers' EXIT

# Time of a process in user space and in the kernel, in hundredths of a second.
used() {
    awk '{ print $14 + $15 }' "/proc/$1/stat"
}

run() {
    arm=$1
    shift
    # A terminal of its own, from which no key comes.
    sleep 1000 | TERM=xterm script -qec "stty cols 132 rows 40; exec $*" /dev/null >/dev/null &
    until pid=$(pgrep -nx "$2") && [ "$(used "$pid")" -gt 0 ]; do sleep 0.1; done 2>/dev/null
    # Its start is over by then.
    sleep 8
    before=$(used "$pid")
    sleep $seconds
    after=$(used "$pid")
    echo "$arm $before $after $seconds" | awk '{ print $1, ($3 - $2) / $4 }'
    kill "$pid"
    while kill -0 "$pid" 2>/dev/null; do sleep 0.1; done
    pkill -x sleep || true
}

round=1
while [ "$round" -le "$1" ]; do
    run screen env tbv-top -i 0.1
    run batch env tbv-top -i 0.1 --batch -f jsonl
    run record env tbv-trace record -a -i 0.1 -o /tmp/load.jsonl
    round=$((round + 1))
done
