//! The kernel's half of the published ring, compiled from its own source, against the consumer.
#![cfg(test)]
#![cfg(not(loom))]

mod driver;

use std::{
    sync::{
        Mutex,
        atomic::{
            AtomicBool, AtomicU64,
            Ordering::{Acquire, Relaxed, Release},
        },
    },
    thread,
};

use driver::Kernel;
use tbv_cq_ring::{Consumer, Entry, Mapped, Memory as _, Nothing};

/// Just below where 32 and 64 bits end, so that totals pass both.
const FIRSTS: [u64; 2] = [u32::MAX as u64 - 500, u64::MAX - 500];

/// Completion `number`, of which every word tells all.
fn entry(number: u64) -> Entry {
    let mixed = |word: u64| (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(word as u32 * 8);
    [number, mixed(1), mixed(2), mixed(3), mixed(4), mixed(5)]
}

/// Polls up to `room`, and appends what was taken: whole, and in order, so that each queue pair's are.
fn poll(queue: &Consumer<Mapped>, room: usize, taken: &mut Vec<u64>) -> Result<usize, Nothing> {
    let mut copies = [Entry::default(); 16];
    let n = queue.poll(room, |at, entry| copies[at] = *entry)?;
    for copy in &copies[..n] {
        assert_eq!(*copy, entry(copy[0]), "torn");
        assert!(taken.last() < Some(&copy[0]), "out of order");
        taken.push(copy[0]);
    }
    Ok(n)
}

/// Polls until `done`, and then until nothing is left; what was taken.
fn consume(queue: &Consumer<Mapped>, room: usize, done: &AtomicBool) -> Vec<u64> {
    let mut taken = Vec::new();
    loop {
        let end = done.load(Acquire);
        match poll(queue, room, &mut taken) {
            Ok(_) => {}
            Err(Nothing::Corrupt) => panic!("corrupt, and nobody wrote into the page"),
            Err(_) if end => return taken,
            Err(_) => thread::yield_now(),
        }
    }
}

/// Lets consumers end, even if the test fails.
struct AtEnd<'a>(&'a AtomicBool);

impl Drop for AtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Release);
    }
}

/// As `consume`, by system calls.
fn consume_in_kernel(kernel: &Mutex<Kernel>, done: &AtomicBool) -> Vec<u64> {
    let mut taken = Vec::new();
    loop {
        let end = done.load(Acquire);
        let n = kernel.lock().unwrap().poll(3, &mut taken);
        if n == 0 && end {
            return taken;
        }
        thread::yield_now();
    }
}

/// Whether each of `numbers` is there once.
fn check_each_once(mut all: Vec<u64>, numbers: &[u64]) {
    all.sort_unstable();
    assert_eq!(all.len(), numbers.len());
    assert!(all == numbers, "one was taken twice, and another never");
}

/// `total` completions, none lost, through consumers and, if asked for, system calls.
fn run(cqe: u32, first: u64, total: u64, calls: bool) {
    let (kernel, queue) = Kernel::new(cqe, first);
    let (kernel, done) = (Mutex::new(kernel), AtomicBool::new(false));
    let all = thread::scope(|scope| {
        let rooms = [1, 2, 5, 16, 1, 2, 5, 16];
        let (queue, end) = (&queue, &done);
        let mut consumers = Vec::from(rooms.map(|room| scope.spawn(move || consume(queue, room, end))));
        if calls {
            consumers.push(scope.spawn(|| consume_in_kernel(&kernel, &done)));
        }
        let end = AtEnd(&done);
        for number in 0..total {
            while !kernel.lock().unwrap().push(&entry(number)) {
                assert!(!consumers.iter().any(|consumer| consumer.is_finished()), "a consumer failed");
                thread::yield_now();
            }
        }
        drop(end);
        consumers.into_iter().flat_map(|consumer| consumer.join().unwrap()).collect::<Vec<_>>()
    });
    check_each_once(all, &(0..total).collect::<Vec<_>>());
    let kernel = kernel.into_inner().unwrap();
    assert_eq!(kernel.consumed(), first.wrapping_add(total));
    assert!(kernel.is_whole());
}

#[test]
fn each_completion_is_taken_once_whole_and_in_order() {
    for first in FIRSTS {
        for (cqe, total) in [(1, 5_000), (2, 5_000), (3, 10_000), (7, 20_000), (4096, 200_000)] {
            run(cqe, first, total, false);
        }
    }
}

#[test]
fn system_calls_and_consumers_share_them() {
    for first in FIRSTS {
        for (cqe, total) in [(1, 5_000), (3, 10_000), (4096, 100_000)] {
            run(cqe, first, total, true);
        }
    }
}

#[test]
fn what_is_lost_is_counted_and_the_rest_is_taken() {
    const TRIES: u64 = 100_000;
    for cqe in [1, 3, 64] {
        let (mut kernel, queue) = Kernel::new(cqe, FIRSTS[1]);
        let (mut pushed, mut lost) = (Vec::new(), 0);
        let done = AtomicBool::new(false);
        let all = thread::scope(|scope| {
            let consumers: Vec<_> = (0..8).map(|_| scope.spawn(|| consume(&queue, 4, &done))).collect();
            let end = AtEnd(&done);
            for number in 0..TRIES {
                if kernel.push(&entry(number)) {
                    pushed.push(number);
                } else {
                    kernel.overflow();
                    lost += 1;
                    assert_eq!(queue.memory().ovf_seq().load(Relaxed), lost);
                }
                if number % 128 == 0 {
                    thread::yield_now();
                }
            }
            drop(end);
            consumers.into_iter().flat_map(|consumer| consumer.join().unwrap()).collect::<Vec<_>>()
        });
        assert!(lost > 0 && !pushed.is_empty(), "{lost} lost, {} pushed", pushed.len());
        assert_eq!(all.len() as u64 + lost, TRIES);
        check_each_once(all, &pushed);
        assert!(kernel.is_whole());
    }
}

#[test]
fn who_waits_for_what_was_lost_is_told_once_and_the_queue_works_on() {
    let (mut kernel, queue) = Kernel::new(4, FIRSTS[1]);
    for number in 0..10 {
        if !kernel.push(&entry(number)) {
            kernel.overflow();
        }
    }
    let mut taken = Vec::new();
    let nothing = loop {
        match poll(&queue, 3, &mut taken) {
            Ok(_) => assert!(taken.len() < 10),
            Err(nothing) => break nothing,
        }
    };
    assert_eq!((nothing, taken.len()), (Nothing::Overflow, 4));
    assert_eq!(poll(&queue, 1, &mut taken), Err(Nothing::Empty));
    assert!(kernel.push(&entry(10)));
    assert_eq!(poll(&queue, 3, &mut taken), Ok(1));
    assert_eq!(poll(&queue, 1, &mut taken), Err(Nothing::Empty));
    assert_eq!(taken, [0, 1, 2, 3, 10]);
}

#[test]
fn what_is_taken_out_and_put_in_again_keeps_its_order_and_comes_before_the_end() {
    let (mut kernel, queue) = Kernel::new(7, FIRSTS[1]);
    (0..7).for_each(|number| assert!(kernel.push(&entry(number))));
    assert!(kernel.take(FIRSTS[1], kernel.produced()));
    [1, 4, 5].into_iter().for_each(|number| assert!(kernel.push(&entry(number))));
    kernel.die();
    let mut taken = Vec::new();
    assert_eq!(poll(&queue, 2, &mut taken), Ok(2));
    assert_eq!(poll(&queue, 2, &mut taken), Ok(1));
    assert_eq!(poll(&queue, 2, &mut taken), Err(Nothing::Dead));
    assert_eq!(taken, [1, 4, 5]);
    assert_eq!(kernel.consumed(), kernel.produced());
}

/// Else a process could have the kernel try in vain, as often as it polls.
#[test]
fn the_kernel_puts_a_total_right_that_cannot_be() {
    let (mut kernel, queue) = Kernel::new(3, FIRSTS[1]);
    (0..3).for_each(|number| assert!(kernel.push(&entry(number))));
    queue.memory().consumed().store(kernel.produced().wrapping_add(1), Release);
    assert!(kernel.take(FIRSTS[1], FIRSTS[1].wrapping_add(1)));
    let mut taken = Vec::new();
    assert_eq!(poll(&queue, 4, &mut taken), Ok(2));
    assert_eq!(taken, [1, 2]);
    // What can be is another consumer's.
    assert!(kernel.push(&entry(3)));
    let from = kernel.consumed();
    assert_eq!(poll(&queue, 1, &mut taken), Ok(1));
    assert!(!kernel.take(from, kernel.produced()));
}

#[test]
fn a_total_that_cannot_be_is_corrupt_and_reads_nothing() {
    for cqe in [1, 3, 4096] {
        let (mut kernel, queue) = Kernel::new(cqe, FIRSTS[1]);
        assert!(kernel.push(&entry(0)));
        let (consumed, produced) = (queue.memory().consumed(), kernel.produced());
        let beyond = [1, 2, 1 << 32, 1 << 63].map(|more| produced.wrapping_add(more));
        let before = [1, 1 << 32].map(|less| produced.wrapping_sub(u64::from(cqe)).wrapping_sub(less));
        for wrong in beyond.into_iter().chain(before) {
            consumed.store(wrong, Release);
            let polled = queue.poll(16, |_, _| panic!("read with {wrong:#x}"));
            assert_eq!(polled, Err(Nothing::Corrupt));
            assert_eq!(kernel.consumed(), FIRSTS[1]);
        }
        consumed.store(FIRSTS[1], Release);
        let mut taken = Vec::new();
        assert_eq!(poll(&queue, 1, &mut taken), Ok(1));
    }
}

/// Writes what a hostile process may into the consumer page, until `done`.
fn scribble(queue: &Consumer<Mapped>, done: &AtomicBool) {
    let mut random = 1u64;
    while !done.load(Relaxed) {
        for _ in 0..64 {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let produced = queue.memory().produced().load(Relaxed);
            // Anything, or something near what is true.
            let word = if random & 1 == 0 { random } else { produced.wrapping_sub(random >> 60) };
            queue.memory().consumed().store(word, Relaxed);
        }
        thread::yield_now();
    }
}

#[test]
fn a_hostile_consumer_page_harms_nobody_else() {
    for cqe in [1, 3, 7, 4096] {
        let (mut kernel, queue) = Kernel::new(cqe, FIRSTS[1]);
        let (done, corrupt) = (AtomicBool::new(false), AtomicU64::new(0));
        let (mut pushed, mut consumed) = (0, FIRSTS[1]);
        thread::scope(|scope| {
            scope.spawn(|| scribble(&queue, &done));
            scope.spawn(|| {
                while !done.load(Relaxed) {
                    let polled = queue.poll(16, |at, _| assert!(at < 16));
                    corrupt.fetch_add((polled == Err(Nothing::Corrupt)).into(), Relaxed);
                    thread::yield_now();
                }
            });
            let _end = AtEnd(&done);
            for number in 0..u64::MAX {
                // On a busy machine the others have their turn late.
                let seen = corrupt.load(Relaxed) > 0 && pushed > u64::from(cqe);
                if number >= 50_000 && (seen || number >= 500_000_000) {
                    break;
                }
                pushed += u64::from(kernel.push(&entry(number)));
                let now = kernel.consumed();
                assert!(kernel.produced().wrapping_sub(now) <= cqe.into());
                assert!(now.wrapping_sub(consumed) <= u64::from(cqe) + 1, "the kernel's view went back");
                consumed = now;
                if number % 64 == 0 {
                    thread::yield_now();
                }
            }
        });
        assert_eq!(kernel.produced(), FIRSTS[1].wrapping_add(pushed));
        assert!(corrupt.into_inner() > 0);
        assert!(pushed > u64::from(cqe) && kernel.is_whole());
    }
}
