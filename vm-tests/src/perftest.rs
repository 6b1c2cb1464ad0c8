//! Two-sided workloads: a server in the background and its client, as one shell command.

use crate::rxe::{ADDRESS, DEVICE, GID_INDEX};
use crate::usb4::DEVICES;

/// perftest and the pingpongs listen on this port when started as a server.
const PORT: u16 = 18515;

/// A perftest command's two sides with `options`. Without `-x` each side looks through the whole GID
/// table, thousands of calls.
pub fn perftest(program: &str, options: &str) -> String {
    let command = format!("{program} -d {DEVICE} -F {options}");
    both_sides(&command, &format!("{command} {ADDRESS}"))
}

/// An ibv_*_pingpong's two sides with `options`.
pub fn pingpong(program: &str, options: &str) -> String {
    let command = format!("{program} -d {DEVICE} -g {GID_INDEX} {options}");
    both_sides(&command, &format!("{command} {ADDRESS}"))
}

/// A perftest pair whose sides are killed once `packets` more packets were sent.
pub fn killed(program: &str, options: &str, packets: u64) -> String {
    let command = format!("{program} -d {DEVICE} -F {options}");
    let counter = format!("/sys/class/infiniband/{DEVICE}/ports/1/hw_counters/sent_pkts");
    format!(
        "{}{command} {ADDRESS} & client=$!
        end=$(($(cat {counter}) + {packets}))
        while [ $(cat {counter}) -lt $end ]; do kill -0 $client || exit 3; sleep 0.1; done
        kill -KILL $client $server; wait $client; [ $? = 137 ]",
        server(&command)
    )
}

/// Both sides of a program over the virtual cable, the one on the second device as client.
pub fn over_cable(program: &str, options: &str) -> String {
    let [one, other] = DEVICES.map(|device| format!("{program} -d {device} {options}"));
    both_sides(&one, &format!("{other} 127.0.0.1"))
}

/// A server and its client, once it listens.
pub fn both_sides(server_command: &str, client: &str) -> String {
    format!("{}{client} || exit 4; wait $server", server(server_command))
}

/// Starts the server and waits until it listens: state 0A in /proc/net/tcp*.
pub(crate) fn server(command: &str) -> String {
    format!(
        "{command} >/dev/null & server=$!
        until grep -q ':{PORT:04X} 0*:0000 0A ' /proc/net/tcp /proc/net/tcp6; do
            kill -0 $server || exit 2; sleep 0.1
        done
        "
    )
}
