#!/bin/sh
# What `cargo xtask top` runs in its guest: tbv-top in front of a workload.
# Usage: sh guest.sh [OPTION OF tbv-top]...
sh "$(dirname "$0")/workload.sh" >/dev/null 2>&1 &
exec tbv-top "$@"
