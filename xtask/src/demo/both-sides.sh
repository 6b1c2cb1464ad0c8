#!/bin/sh
# Both sides of ib_send_lat; its own numbers are dropped, and its exit status kept. The provider that both
# loaded is written to the file LOADED_PROVIDER, if that is set.
# Usage: sh both-sides.sh SERVER_DEVICE CLIENT_DEVICE SERVER_ADDRESS ITERATIONS
ib_send_lat -F -d "$1" -n "$4" >/dev/null &
server=$!
# The client gives up if nobody listens yet. 4853 is port 18515, 0A is LISTEN.
until grep -q ":4853 0*:0000 0A " /proc/net/tcp /proc/net/tcp6; do
    kill -0 $server || exit 2
    sleep 0.1
done
ib_send_lat -F -d "$2" -n "$4" "$3" >/dev/null &
client=$!
if [ -n "$LOADED_PROVIDER" ]; then
    until grep -q libusb4_rdma /proc/$client/maps; do
        kill -0 $client || exit 2
    done
    sed -n 's/^.* \(\/.*libusb4_rdma.*\)$/\1/p' /proc/$server/maps /proc/$client/maps | sort -u >"$LOADED_PROVIDER"
fi
wait $client && wait $server
