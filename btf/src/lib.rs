//! The kernel's own type information (BTF): where a field is in a structure, and the id of a
//! function, also one of a module, whose BTF continues that of the kernel.

use std::{fs, path::Path};

/// Where the kernel shows it, one file for itself and one a module.
pub const BTF_DIR: &str = "/sys/kernel/btf";

/// Why BTF could not be used.
#[derive(Debug, thiserror::Error)]
pub enum BtfError {
    /// The file can't be read: no BTF in this kernel, or no permission.
    #[error("{0}: {1}")]
    Read(String, std::io::Error),
    /// Not BTF, or of a form that is not known.
    #[error("{0}: malformed BTF at byte {1}")]
    Malformed(String, usize),
}

const MAGIC: u16 = 0xeb9f;
const KIND_INT: u32 = 1;
const KIND_ARRAY: u32 = 3;
const KIND_STRUCT: u32 = 4;
const KIND_UNION: u32 = 5;
const KIND_ENUM: u32 = 6;
const KIND_FUNC: u32 = 12;
const KIND_FUNC_PROTO: u32 = 13;
const KIND_VAR: u32 = 14;
const KIND_DATASEC: u32 = 15;
const KIND_DECL_TAG: u32 = 17;
const KIND_ENUM64: u32 = 19;

struct Type {
    name: u32,
    kind: u32,
    /// The highest bit of the info word: members are bit fields.
    flag: bool,
    vlen: usize,
    /// Position of what follows the 12 common bytes.
    tail: usize,
}

/// One BTF object: the kernel's, or a module's on top of the kernel's.
pub struct Btf {
    name: String,
    data: Vec<u8>,
    types: Vec<Type>,
    strings: usize,
    /// Types and string bytes of the base, which this one continues; 1 and 0 without one.
    first_id: u32,
    string_base: u32,
    string_len: u32,
}

impl Btf {
    /// The running kernel's.
    pub fn vmlinux() -> Result<Self, BtfError> {
        Self::read(&Path::new(BTF_DIR).join("vmlinux"), None)
    }

    /// A loaded module's, on top of `base`.
    pub fn module(name: &str, base: &Btf) -> Result<Self, BtfError> {
        Self::read(&Path::new(BTF_DIR).join(name), Some(base))
    }

    fn read(path: &Path, base: Option<&Btf>) -> Result<Self, BtfError> {
        let name = path.display().to_string();
        let data = fs::read(path).map_err(|e| BtfError::Read(name.clone(), e))?;
        Self::parse(name, data, base)
    }

    fn parse(name: String, data: Vec<u8>, base: Option<&Btf>) -> Result<Self, BtfError> {
        let malformed = |at: usize| BtfError::Malformed(name.clone(), at);
        let word = |at: usize| read_u32(&data, at).ok_or_else(|| malformed(at));
        if data.get(..2) != Some(&MAGIC.to_ne_bytes()) {
            return Err(malformed(0));
        }
        let header = word(4)? as usize;
        let types_at = header + word(8)? as usize;
        let types_end = types_at + word(12)? as usize;
        let strings = header + word(16)? as usize;
        let string_len = word(20)?;
        if types_end > data.len() || strings + string_len as usize > data.len() {
            return Err(malformed(data.len()));
        }
        let mut types = Vec::new();
        let mut at = types_at;
        while at < types_end {
            let info = word(at + 4)?;
            let (kind, vlen) = (info >> 24 & 0x1f, (info & 0xffff) as usize);
            types.push(Type { name: word(at)?, kind, flag: info >> 31 == 1, vlen, tail: at + 12 });
            at += 12
                + match kind {
                    KIND_INT | KIND_VAR | KIND_DECL_TAG => 4,
                    KIND_ARRAY => 12,
                    KIND_STRUCT | KIND_UNION | KIND_DATASEC | KIND_ENUM64 => 12 * vlen,
                    KIND_ENUM | KIND_FUNC_PROTO => 8 * vlen,
                    1..=19 => 0,
                    _ => return Err(malformed(at)),
                };
        }
        let (first_id, string_base) =
            base.map_or((1, 0), |b| (b.first_id + b.types.len() as u32, b.string_base + b.string_len));
        Ok(Btf { name, data, types, strings, first_id, string_base, string_len })
    }

    fn string(&self, offset: u32) -> Option<&[u8]> {
        let start = self.strings + offset.checked_sub(self.string_base)? as usize;
        let end = self.strings + self.string_len as usize;
        self.data.get(start..end)?.split(|b| *b == 0).next()
    }

    fn is_called(&self, t: &Type, name: &str) -> bool {
        let start = t.name.checked_sub(self.string_base).map(|offset| self.strings + offset as usize);
        let text = start.and_then(|start| self.data.get(start..start + name.len() + 1));
        text.and_then(|text| text.strip_prefix(name.as_bytes())) == Some(b"\0")
    }

    /// Id of the function `name`, as bpf(2) wants it in `attach_btf_id`.
    pub fn function(&self, name: &str) -> Option<u32> {
        let found = self.types.iter().position(|t| t.kind == KIND_FUNC && self.is_called(t, name))?;
        Some(self.first_id + found as u32)
    }

    /// Byte offset of `member` in `struct name`, also inside its anonymous structures. Only
    /// for the kernel's own BTF, which has no base.
    pub fn offset(&self, name: &str, member: &str) -> Option<u32> {
        let found = self.types.iter().position(|t| t.kind == KIND_STRUCT && self.is_called(t, name))?;
        self.member(found, member, 0)
    }

    fn member(&self, index: usize, member: &str, depth: u32) -> Option<u32> {
        const DEEPEST: u32 = 8;
        let ty = self.types.get(index)?;
        if !matches!(ty.kind, KIND_STRUCT | KIND_UNION) || depth > DEEPEST {
            return None;
        }
        for i in 0..ty.vlen {
            let at = ty.tail + 12 * i;
            let name = self.string(read_u32(&self.data, at)?)?;
            let bits = read_u32(&self.data, at + 8)? & if ty.flag { 0xff_ffff } else { u32::MAX };
            if name == member.as_bytes() {
                return Some(bits / 8);
            }
            if name.is_empty() {
                let inner = read_u32(&self.data, at + 4)?.checked_sub(self.first_id)?;
                if let Some(offset) = self.member(inner as usize, member, depth + 1) {
                    return Some(bits / 8 + offset);
                }
            }
        }
        None
    }

    /// The file it came from.
    pub fn name(&self) -> &str {
        &self.name
    }
}

fn read_u32(data: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(data.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// `struct outer { int a; struct { int b; int c; }; }` and `void f(void)`.
    fn sample() -> Vec<u8> {
        let strings = b"\0int\0outer\0a\0b\0c\0f\0";
        let mut types: Vec<u32> = vec![1, KIND_INT << 24, 4, 32];
        types.extend([5, KIND_STRUCT << 24 | 2, 12, 11, 1, 0, 0, 3, 32]);
        types.extend([0, KIND_STRUCT << 24 | 2, 8, 13, 1, 0, 15, 1, 32]);
        types.extend([0, KIND_FUNC_PROTO << 24, 0]);
        types.extend([17, KIND_FUNC << 24, 4]);
        let len = types.len() as u32 * 4;
        let mut data = MAGIC.to_ne_bytes().to_vec();
        data.extend([1, 0]);
        for word in [24, 0, len, len, strings.len() as u32] {
            data.extend(word.to_ne_bytes());
        }
        types.iter().for_each(|t| data.extend(t.to_ne_bytes()));
        data.extend(strings);
        data
    }

    #[test]
    fn finds_members_also_in_anonymous_structures() {
        let btf = Btf::parse("sample".into(), sample(), None).unwrap();
        assert_eq!(btf.offset("outer", "a"), Some(0));
        assert_eq!(btf.offset("outer", "c"), Some(8));
        assert_eq!(btf.offset("outer", "d"), None);
        assert_eq!(btf.offset("inner", "a"), None);
        assert_eq!(btf.function("f"), Some(5));
    }

    #[test]
    fn module_ids_continue_those_of_the_base() {
        let base = Btf::parse("base".into(), sample(), None).unwrap();
        let strings = b"\0g\0";
        let mut data = MAGIC.to_ne_bytes().to_vec();
        data.extend([1, 0]);
        for word in [24u32, 0, 12, 12, strings.len() as u32] {
            data.extend(word.to_ne_bytes());
        }
        for word in [base.string_len + 1, KIND_FUNC << 24, 4] {
            data.extend(word.to_ne_bytes());
        }
        data.extend(strings);
        let module = Btf::parse("module".into(), data, Some(&base)).unwrap();
        assert_eq!(module.function("g"), Some(6));
    }

    #[test]
    fn this_kernel_has_the_fields_we_read() {
        let Ok(btf) = Btf::vmlinux() else {
            println!("skipped: this kernel shows no BTF");
            return;
        };
        let (pid, tgid) = (btf.offset("task_struct", "pid"), btf.offset("task_struct", "tgid"));
        assert_eq!(pid.map(|p| p + 4), tgid);
        assert!(btf.offset("inode", "i_rdev").is_some());
    }

    proptest! {
        #[test]
        fn damaged_btf_is_an_error_or_finds_nothing(at in 0usize..200, byte: u8, cut in 0usize..220) {
            let mut data = sample();
            if let Some(b) = data.get_mut(at) { *b = byte }
            data.truncate(cut);
            if let Ok(btf) = Btf::parse("damaged".into(), data, None) {
                let _ = (btf.offset("outer", "c"), btf.function("f"));
            }
        }
    }
}
