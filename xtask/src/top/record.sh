#!/bin/sh
# Makes the recording that is in the repository:
#   cargo xtask vm --rw docs -- sh xtask/src/top/record.sh docs/demo.jsonl
set -e
sh "$(dirname "$0")/workload.sh" 250 >/dev/null 2>&1 &
workload=$!
trap 'kill $workload' EXIT
# By the command that anybody would use; what it prints tells whether anything was lost.
tbv-top --once -d 15 -i 1 --record "$1" --strict
