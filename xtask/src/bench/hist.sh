#!/bin/sh
# What latency histograms cost a message: ib_send_lat and ib_send_bw with nothing traced, with the driver's tracepoints
# on, with `tbv-trace hist`, and with every span streamed, in turn. A line a run: PROGRAM ARM MICROSECONDS
# Usage: sh hist.sh ROUNDS
set -e
events=/sys/kernel/tracing/events/tbv/enable

both() {
    "$@" -F -d usb4_rdma0 >/dev/null &
    server=$!
    # 4853 is port 18515, 0A is LISTEN.
    until grep -q ":4853 0*:0000 0A " /proc/net/tcp /proc/net/tcp6; do
        kill -0 $server || exit 2
        sleep 0.05
    done
    "$@" -F -d usb4_rdma1 127.0.0.1
    wait $server
}

# The columns: bytes, iterations, minimum, maximum, typical.
lat() {
    # Sleeping between messages: two that poll share one processor by the tick.
    both ib_send_lat -e -s 64 -n 1000 | awk '$1 == 64 { print $5 }'
}

# Megabytes (2^20 bytes) a second on average are the fourth column.
bw() {
    both ib_send_bw -s 4096 -n 4000 | awk '$1 == 4096 { print 4096 / 1048576 / $4 * 1000000 }'
}

traced() {
    tbv-trace hist -a -v -f json -o /tmp/hist.json "$@" 2>/tmp/hist.log &
    tracer=$!
    until grep -q "attached" /tmp/hist.log; do
        kill -0 $tracer || { cat /tmp/hist.log >&2; exit 2; }
        sleep 0.05
    done
}

round=1
while [ "$round" -le "$1" ]; do
    for program in lat bw; do
        [ $((round % 2)) = 1 ] && arms="off tracepoints hist streaming" || arms="streaming hist tracepoints off"
        for arm in $arms; do
            tracer=
            case $arm in
            tracepoints) echo 1 >$events ;;
            hist) traced ;;
            streaming) traced --samples /dev/null ;;
            esac
            echo "$program $arm $($program)"
            echo 0 >$events
            if [ -n "$tracer" ]; then
                # Not by INT, which a shell makes its background jobs ignore.
                kill -TERM $tracer
                wait $tracer
            fi
        done
    done
    round=$((round + 1))
done
