//! The protocol of the published ring, in every order that the C11 memory model allows (up to a number of
//! preemptions): the kernel's half as `kmod/cq_ring.c` has it, consumers as they are.
//!
//! No thread waits for another, so that every run ends: the kernel tries to push so many times, each consumer polls
//! so many times, and what is left is taken when all have ended.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p tbv-cq-ring --test loom --target-dir target/loom -- --test-threads=1`
#![cfg(test)]
#![cfg(loom)]

use std::{array::from_fn, iter::repeat_with};

use loom::{model::Builder, sync::Arc, thread};
use tbv_cq_ring::{
    Consumer, Entry, Memory, Nothing, WORDS,
    atomic::{
        AtomicBool, AtomicU32, AtomicU64,
        Ordering::{AcqRel, Acquire, Relaxed, Release},
    },
};

/// Where totals begin: just below where 32 and 64 bits end.
const FIRSTS: [u64; 2] = [u32::MAX as u64, u64::MAX - 1];

/// What kernel and process share.
struct Ring {
    cqe: u32,
    slots: Vec<[AtomicU64; WORDS]>,
    produced: AtomicU64,
    consumed: AtomicU64,
    ovf_seq: AtomicU64,
    dead: AtomicU32,
    /// Written before each access to `consumed`, relaxed, so that it orders nothing. loom lets a thread come earlier
    /// only than the last access it conflicts with, and behind another thread's load it does not see the kernel's:
    /// with this, every access conflicts.
    step: AtomicU64,
}

impl Memory for Ring {
    fn cqe(&self) -> u32 {
        self.cqe
    }

    fn produced(&self) -> &AtomicU64 {
        &self.produced
    }

    fn consumed(&self) -> &AtomicU64 {
        self.step.fetch_add(1, Relaxed);
        &self.consumed
    }

    fn ovf_seq(&self) -> &AtomicU64 {
        &self.ovf_seq
    }

    fn dead(&self) -> &AtomicU32 {
        &self.dead
    }

    fn slot(&self, number: u64) -> &[AtomicU64; WORDS] {
        &self.slots[(number % self.slots.len() as u64) as usize]
    }
}

type Queue = Arc<Consumer<Ring>>;

/// `struct tbv_cq_ring` and the functions of `kmod/cq_ring.c`. The queue's lock makes one thread of those that call them.
struct Kernel {
    queue: Queue,
    first: u64,
    produced: u64,
    consumed: u64,
    overflows: u64,
    /// Identities of all completions in the order of their numbers: the kernel reads its own copies.
    pushed: Vec<u64>,
}

impl Kernel {
    /// `tbv_cq_ring_init` and `tbv_cq_ring_publish`.
    fn new(cqe: u32, first: u64) -> (Kernel, Queue) {
        let slots = repeat_with(|| from_fn(|_| AtomicU64::new(0)));
        let queue = Arc::new(Consumer::new(Ring {
            cqe,
            slots: slots.take(cqe.next_power_of_two() as usize).collect(),
            produced: AtomicU64::new(first),
            consumed: AtomicU64::new(first),
            ovf_seq: AtomicU64::new(0),
            dead: AtomicU32::new(0),
            step: AtomicU64::new(0),
        }));
        let kernel = Kernel {
            queue: queue.clone(),
            first,
            produced: first,
            consumed: first,
            overflows: 0,
            pushed: Vec::new(),
        };
        (kernel, queue)
    }

    /// `tbv_cq_ring_consumed`.
    fn consumed(&mut self) -> u64 {
        let told = self.queue.memory().consumed().load(Acquire);
        if told.wrapping_sub(self.consumed) <= self.produced.wrapping_sub(self.consumed) {
            self.consumed = told;
        }
        self.consumed
    }

    /// `tbv_cq_ring_full`, then `tbv_cq_ring_push`; whether there was room.
    fn push(&mut self, id: u64) -> bool {
        let in_use = self.produced.wrapping_sub(self.consumed());
        if in_use >= self.queue.memory().cqe.into() {
            return false;
        }
        let ring = self.queue.memory();
        for (to, word) in ring.slot(self.produced).iter().zip(entry(id)) {
            to.store(word, Relaxed);
        }
        self.produced = self.produced.wrapping_add(1);
        ring.produced.store(self.produced, Release);
        self.pushed.push(id);
        true
    }

    /// `tbv_cq_push` of `kmod/cq.c`: a completion for which there is no room is lost.
    fn push_or_lose(&mut self, id: u64) {
        if !self.push(id) {
            // tbv_cq_ring_overflow
            self.overflows += 1;
            self.queue.memory().ovf_seq.store(self.overflows, Release);
        }
    }

    /// `tbv_cq_ring_take`, with no more ordering than the kernel's `cmpxchg` has at least.
    fn take(&mut self, from: u64, to: u64) -> bool {
        let taken = self.queue.memory().consumed().compare_exchange(from, to, AcqRel, Relaxed).is_ok();
        if taken {
            self.consumed = to;
        }
        taken
    }

    /// `tbv_cq_ring_die`.
    fn die(&self) {
        self.queue.memory().dead.store(1, Release);
    }

    /// One try of `tbv_poll_cq` of `kmod/cq.c`.
    fn poll(&mut self, room: u64, taken: &mut Vec<u64>) {
        let from = self.consumed();
        let n = self.produced.wrapping_sub(from).min(room);
        if n > 0 && self.take(from, from.wrapping_add(n)) {
            taken.extend((0..n).map(|i| self.id(from.wrapping_add(i))));
        }
    }

    /// `tbv_cq_purge` of `kmod/cq.c`: all are taken out, and those that do not go are put in again.
    fn purge(&mut self, gone: impl Fn(u64) -> bool) {
        let from = loop {
            let from = self.consumed();
            if self.take(from, self.produced) {
                break from;
            }
        };
        let there = self.produced.wrapping_sub(from);
        for id in (0..there).map(|i| self.id(from.wrapping_add(i))).collect::<Vec<_>>() {
            assert!(gone(id) || self.push(id));
        }
    }

    fn id(&self, number: u64) -> u64 {
        self.pushed[number.wrapping_sub(self.first) as usize]
    }
}

/// Completion `id` > 0; its words cannot come from two completions, nor from an empty slot.
fn entry(id: u64) -> Entry {
    from_fn(|word| id << (8 * word))
}

/// Polls once, and appends what was taken. Nobody writes nonsense here, so none is ever found.
fn poll(queue: &Queue, room: usize, taken: &mut Vec<u64>) -> Option<Nothing> {
    let mut copies = [Entry::default(); 4];
    let polled = queue.poll(room, |at, entry| copies[at] = *entry);
    assert_ne!(polled, Err(Nothing::Corrupt));
    // Who is too late may have copied anything; what is kept is whole.
    taken.extend(copies[..polled.unwrap_or(0)].iter().map(|copy| {
        assert_eq!(*copy, entry(copy[0]), "torn");
        copy[0]
    }));
    polled.err()
}

/// A thread that polls so many times; what it took.
fn consumer(queue: &Queue, polls: usize, room: usize) -> thread::JoinHandle<Vec<u64>> {
    let queue = queue.clone();
    thread::spawn(move || {
        let mut taken = Vec::new();
        for _ in 0..polls {
            poll(&queue, room, &mut taken);
        }
        taken
    })
}

/// Takes what is left; what the last poll said.
fn drain(queue: &Queue) -> (Vec<u64>, Nothing) {
    let mut taken = Vec::new();
    loop {
        if let Some(nothing) = poll(queue, 4, &mut taken) {
            return (taken, nothing);
        }
    }
}

/// Whether all that was pushed was taken once, by each consumer in order.
fn check_all_taken(kernel: &Kernel, by: &[Vec<u64>]) {
    for taken in by {
        assert!(taken.is_sorted_by(|a, b| a < b), "out of order: {taken:?}");
    }
    let mut all = by.concat();
    all.sort_unstable();
    assert_eq!(all, kernel.pushed);
    assert_eq!(kernel.queue.memory().consumed().load(Acquire), kernel.produced);
}

/// Every order of `model` with up to `preemptions` of them, for each beginning of totals.
fn check(preemptions: usize, model: fn(u64)) {
    for first in FIRSTS {
        let mut builder = Builder::new();
        builder.preemption_bound = Some(preemptions);
        builder.check(move || model(first));
    }
}

/// A full queue, a kernel that tries to push `tries` more, and two consumers.
fn two_consumers(cqe: u32, first: u64, tries: u64, rooms: [usize; 2]) {
    let (mut kernel, queue) = Kernel::new(cqe, first);
    let there = u64::from(cqe);
    (1..=there).for_each(|id| assert!(kernel.push(id)));
    let consumers = rooms.map(|room| consumer(&queue, 2, room));
    for id in 1..=tries {
        kernel.push(there + id);
    }
    let mut taken: Vec<_> = consumers.into_iter().map(|consumer| consumer.join().unwrap()).collect();
    taken.push(drain(&queue).0);
    check_all_taken(&kernel, &taken);
}

#[test]
fn one_slot_two_consumers() {
    check(3, |first| two_consumers(1, first, 3, [1, 2]));
}

#[test]
fn two_slots_two_consumers() {
    check(2, |first| two_consumers(2, first, 3, [1, 2]));
}

#[test]
fn three_in_four_slots_two_consumers() {
    check(2, |first| two_consumers(3, first, 3, [2, 3]));
}

#[test]
fn a_poll_by_system_call_among_consumers() {
    check(2, |first| {
        let (mut kernel, queue) = Kernel::new(2, first);
        assert!(kernel.push(1) && kernel.push(2));
        let consumers = [1, 2].map(|room| consumer(&queue, 1, room));
        let mut by_call = Vec::new();
        kernel.poll(1, &mut by_call);
        kernel.push(3);
        kernel.poll(2, &mut by_call);
        let mut taken: Vec<_> = consumers.into_iter().map(|consumer| consumer.join().unwrap()).collect();
        taken.extend([by_call, drain(&queue).0]);
        check_all_taken(&kernel, &taken);
    });
}

#[test]
fn a_purged_completion_is_not_seen_afterwards_and_no_other_is_lost() {
    /// Odd ones are the queue pair's that goes.
    fn gone(id: u64) -> bool {
        id % 2 == 1
    }
    check(2, |first| {
        let (mut kernel, queue) = Kernel::new(4, first);
        (1..=3).for_each(|id| assert!(kernel.push(id)));
        let purged = Arc::new(AtomicBool::new(false));
        let consumer = thread::spawn({
            let (queue, purged) = (queue.clone(), purged.clone());
            move || {
                let mut taken = Vec::new();
                for room in [1, 2] {
                    let (late, before) = (purged.load(Acquire), taken.len());
                    poll(&queue, room, &mut taken);
                    assert!(!late || !taken[before..].iter().any(|id| gone(*id)), "seen after the purge");
                }
                taken
            }
        });
        kernel.purge(gone);
        purged.store(true, Release);
        kernel.push(4);
        let by_consumer = consumer.join().unwrap();
        let (rest, _) = drain(&queue);
        assert!(!rest.iter().any(|id| gone(*id)), "seen after the purge: {rest:?}");
        let mut all = [by_consumer, rest].concat();
        assert!(all.is_sorted_by(|a, b| a < b), "out of order: {all:?}");
        all.retain(|id| !gone(*id));
        assert_eq!(all, [2, 4]);
        assert_eq!(queue.memory().consumed().load(Acquire), kernel.produced);
    });
}

#[test]
fn each_loss_is_told_once() {
    check(2, |first| {
        let (mut kernel, queue) = Kernel::new(1, first);
        kernel.push(1);
        let told = Arc::new(AtomicU64::new(0));
        let consumers = [2, 2].map(|polls| {
            let (queue, told) = (queue.clone(), told.clone());
            thread::spawn(move || {
                let mut taken = Vec::new();
                for _ in 0..polls {
                    if poll(&queue, 1, &mut taken) == Some(Nothing::Overflow) {
                        told.fetch_add(1, Relaxed);
                    }
                }
                taken
            })
        });
        kernel.push_or_lose(2);
        kernel.push_or_lose(3);
        let mut taken: Vec<_> = consumers.into_iter().map(|consumer| consumer.join().unwrap()).collect();
        let mut told = told.load(Relaxed);
        let (rest, mut nothing) = drain(&queue);
        taken.push(rest);
        while nothing == Nothing::Overflow {
            told += 1;
            nothing = drain(&queue).1;
        }
        check_all_taken(&kernel, &taken);
        assert_eq!(kernel.pushed.len() as u64 + kernel.overflows, 3);
        assert_eq!(told > 0, kernel.overflows > 0, "a loss nobody heard of, or news of none");
        assert!(told <= kernel.overflows, "{} losses told {told} times", kernel.overflows);
    });
}

#[test]
fn what_preceded_the_end_is_taken_before_the_end_is_told() {
    check(2, |first| {
        let (mut kernel, queue) = Kernel::new(2, first);
        let consumers = [2, 2].map(|polls| {
            let queue = queue.clone();
            thread::spawn(move || {
                let mut taken = Vec::new();
                for _ in 0..polls {
                    if poll(&queue, 1, &mut taken) == Some(Nothing::Dead) {
                        let consumed = queue.memory().consumed().load(Acquire);
                        assert_eq!(consumed, first.wrapping_add(2), "told too early");
                    }
                }
                taken
            })
        });
        assert!(kernel.push(1) && kernel.push(2));
        kernel.die();
        let mut taken: Vec<_> = consumers.into_iter().map(|consumer| consumer.join().unwrap()).collect();
        let (rest, nothing) = drain(&queue);
        assert_eq!(nothing, Nothing::Dead);
        taken.push(rest);
        check_all_taken(&kernel, &taken);
    });
}
