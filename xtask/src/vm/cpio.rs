//! Writes the archive format of initramfs images ("newc").

const DIRECTORY: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;
const LINK: u32 = 0o120_777;

/// An archive in the making. The kernel unpacks concatenated archives one after the other.
#[derive(Default)]
pub(crate) struct Archive {
    bytes: Vec<u8>,
    entries: u32,
}

impl Archive {
    pub(crate) fn directory(&mut self, name: &str) {
        self.entry(name, DIRECTORY, &[]);
    }

    /// A file that anybody may read and execute.
    pub(crate) fn file(&mut self, name: &str, content: &[u8]) {
        self.entry(name, PROGRAM, content);
    }

    pub(crate) fn link(&mut self, name: &str, target: &str) {
        self.entry(name, LINK, target.as_bytes());
    }

    /// The finished archive.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, &[]);
        self.bytes
    }

    fn entry(&mut self, name: &str, mode: u32, content: &[u8]) {
        self.entries += 1;
        let fields = [
            self.entries, // inode; equal numbers would mean hard links
            mode,
            0, // user
            0, // group
            1, // links
            0, // time of modification
            content.len() as u32,
            0, // device
            0,
            0, // device that a special file names
            0,
            name.len() as u32 + 1,
            0, // checksum, unused in this variant
        ];
        self.bytes.extend(b"070701");
        for field in fields {
            self.bytes.extend(format!("{field:08x}").bytes());
        }
        self.bytes.extend(name.bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend(content);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::Write,
        process::{Command, Stdio},
    };

    use super::*;

    #[test]
    fn cpio_reads_it_back() {
        let mut archive = Archive::default();
        archive.directory("d");
        archive.file("d/odd", b"12345");
        archive.link("d/l", "odd");
        let bytes = archive.finish();
        assert_eq!(bytes.len() % 4, 0);

        let mut cpio = Command::new("busybox")
            .args(["cpio", "-tv"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the package busybox-static, which setup installs");
        cpio.stdin.take().unwrap().write_all(&bytes).unwrap();
        let listing = String::from_utf8(cpio.wait_with_output().unwrap().stdout).unwrap();
        let lines: Vec<&str> = listing.lines().collect();
        assert_eq!(lines.len(), 3, "{listing}");
        assert!(lines[0].starts_with("drwxr-xr-x") && lines[0].ends_with(" d"), "{listing}");
        assert!(lines[1].starts_with("-rwxr-xr-x") && lines[1].contains(" 5 "), "{listing}");
        assert!(lines[2].ends_with("d/l -> odd"), "{listing}");
    }
}
