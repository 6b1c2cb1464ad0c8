//! Notes of good files, of damaged ones and of files made to harm.

use proptest::prelude::*;

use super::*;

/// Where the code is in a sample: its address, and its offset in the file.
const CODE: (u64, u64) = (0x1000, 0x78);
const CODE_BYTES: u64 = 16;

/// What a sample is made of.
#[derive(Clone)]
struct Sample {
    location: u64,
    base_in_note: u64,
    base: u64,
    semaphore: u64,
    strings: Vec<u8>,
    machine: u16,
}

impl Default for Sample {
    fn default() -> Self {
        Sample {
            location: CODE.0 + 4,
            base_in_note: 0x5000,
            base: 0x5000,
            semaphore: 0,
            strings: b"usb4_rdma\0poll_hit\0-8@%rdi 8@$5\0".to_vec(),
            machine: 62,
        }
    }
}

fn section(name: u32, kind: u32, address: u64, offset: usize, size: usize) -> Vec<u8> {
    let words = [u64::from(name) | u64::from(kind) << 32, 0, address, offset as u64, size as u64, 0, 4, 0];
    words.iter().flat_map(|w| w.to_le_bytes()).collect()
}

impl Sample {
    fn note(&self) -> Vec<u8> {
        let mut desc = Vec::new();
        [self.location, self.base_in_note, self.semaphore].iter().for_each(|w| desc.extend(w.to_le_bytes()));
        desc.extend(&self.strings);
        let mut note = Vec::new();
        [8, desc.len() as u32, 3].iter().for_each(|w| note.extend(w.to_le_bytes()));
        note.extend(b"stapsdt\0");
        note.extend(desc);
        note.resize(note.len().next_multiple_of(4), 0);
        note
    }

    /// Header, a segment with code, notes, names, section headers.
    fn elf(&self) -> Vec<u8> {
        let names = b"\0.note.stapsdt\0.stapsdt.base\0.shstrtab\0";
        let mut code = vec![0xcc; CODE_BYTES as usize];
        code[4] = NOP;
        let note = self.note();
        let at_notes = (CODE.1 + CODE_BYTES) as usize;
        let at_names = at_notes + note.len();
        let at_sections = (at_names + names.len()).next_multiple_of(8);
        let mut file = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        file.extend(3u16.to_le_bytes());
        file.extend(self.machine.to_le_bytes());
        file.extend(1u32.to_le_bytes());
        [0, 64, at_sections as u64].iter().for_each(|w| file.extend(w.to_le_bytes()));
        file.extend(0u32.to_le_bytes());
        [64u16, 56, 1, 64, 4, 3].iter().for_each(|w| file.extend(w.to_le_bytes()));
        // PT_LOAD, read and execute.
        let segment = [1 | 5 << 32, CODE.1, CODE.0, CODE.0, CODE_BYTES, CODE_BYTES, 0x1000];
        segment.iter().for_each(|w| file.extend(w.to_le_bytes()));
        file.extend(code);
        file.extend(note);
        file.extend(names);
        file.resize(at_sections, 0);
        file.extend([0; 64]);
        file.extend(section(1, 7, 0, at_notes, at_names - at_notes));
        file.extend(section(15, 1, self.base, 0, 1));
        file.extend(section(29, 3, 0, at_names, names.len()));
        file
    }

    fn refusal(&self) -> String {
        markers(&self.elf(), "usb4_rdma").expect_err("taken")
    }
}

#[test]
fn a_note_names_a_probe_its_place_and_its_arguments() {
    let found = markers(&Sample::default().elf(), "usb4_rdma").unwrap();
    let [marker] = &found[..] else { panic!("{found:?}") };
    assert_eq!((marker.name.as_str(), marker.offset), ("poll_hit", CODE.1 + 4));
    assert_eq!(marker.arguments.len(), 2);
    assert_eq!(markers(&Sample::default().elf(), "other"), Ok(Vec::new()));
    // Moved by a tool that does not know of notes, such as prelink.
    let moved = Sample { base: 0x7000, location: (CODE.0 + 4).wrapping_sub(0x2000), ..Sample::default() };
    assert_eq!(markers(&moved.elf(), "usb4_rdma").unwrap(), found);
}

#[test]
fn what_cannot_be_is_refused() {
    assert!(Sample { location: CODE.0 + 5, ..Sample::default() }.refusal().contains("no such instruction"));
    for location in [0, CODE.0 - 1, CODE.0 + CODE_BYTES, u64::MAX, u64::MAX - CODE.1] {
        assert!(Sample { location, ..Sample::default() }.refusal().contains("no such instruction"));
    }
    assert!(Sample { semaphore: 8, ..Sample::default() }.refusal().contains("wants to be told"));
    assert!(Sample { machine: 183, ..Sample::default() }.refusal().contains("not for x86-64"));
    for (strings, reason) in [
        (&b"usb4_rdma\0poll_hit\0-8@%rdi"[..], "cut off"),
        (b"usb4_rdma\0poll_hit", "cut off"),
        (b"", "cut off"),
        (b"usb4_rdma\0poll_hit\0-8@%rdi\0more\0", "cut off"),
        (b"usb4_rdma\0poll_hit\0-8@%xmm0\0", "not understood"),
        (b"usb4_rdma\0poll\xff\0-8@%rdi\0", "no text"),
        (b"usb4_rdma\0poll_hit\0-8@%rdi\xff\0", "no text"),
    ] {
        let said = Sample { strings: strings.to_vec(), ..Sample::default() }.refusal();
        assert!(said.contains(reason), "{said}");
    }
    assert!(markers(b"#!/bin/sh\n", "usb4_rdma").unwrap_err().contains("no ELF file"));
}

/// The compiler that builds this builds the provider.
#[test]
fn probes_of_this_program_are_found() {
    #[inline(never)]
    fn polled(device: u32, first: u64) {
        probe::probe!(tbv_test, poll_hit, device, 7, first, 3_usize);
        probe::probe!(tbv_test, poll_empty);
    }
    polled(std::hint::black_box(1), std::hint::black_box(2));
    let image = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    let mut found: Vec<_> = markers(&image, "tbv_test").unwrap();
    found.sort_by_key(|marker| marker.arguments.len());
    let told: Vec<_> = found.iter().map(|m| (m.name.as_str(), m.arguments.len())).collect();
    assert_eq!(told, [("poll_empty", 0), ("poll_hit", 4)]);
}

proptest! {
    #[test]
    fn a_damaged_file_is_refused_or_names_a_place_in_it(at in 0usize..1000, byte: u8, cut in 0usize..1000) {
        let mut file = Sample::default().elf();
        if let Some(b) = file.get_mut(at) { *b = byte }
        file.truncate(cut);
        for marker in markers(&file, "usb4_rdma").unwrap_or_default() {
            prop_assert_eq!(file.get(marker.offset as usize), Some(&NOP));
        }
    }

    #[test]
    fn hostile_numbers_are_refused_or_name_a_place_in_it(
        location: u64, base_in_note: u64, base: u64, strings in prop::collection::vec(any::<u8>(), 0..60),
    ) {
        let file = Sample { location, base_in_note, base, strings, ..Sample::default() }.elf();
        for marker in markers(&file, "usb4_rdma").unwrap_or_default() {
            prop_assert_eq!(file.get(marker.offset as usize), Some(&NOP));
        }
    }
}
