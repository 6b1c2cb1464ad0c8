//! Probes that a program or library has, by the notes in its file (section `.note.stapsdt`, the form of SystemTap's
//! `sys/sdt.h`). The file may be anybody's: nothing in it is taken for granted.

use object::{
    LittleEndian, elf,
    read::elf::{FileHeader as _, ProgramHeader as _, SectionHeader as _},
};
use tbv_common::SiteArg;

use super::arguments;

type Header = elf::FileHeader64<LittleEndian>;

const SECTION: &[u8] = b".note.stapsdt";
/// Where it was when notes were written: tells how far a later tool has moved the code.
const BASE: &[u8] = b".stapsdt.base";
const OWNER: &[u8] = b"stapsdt";
const KIND: u32 = 3;
/// The instruction that a probe is while nobody is attached.
const NOP: u8 = 0x90;

/// A probe at one place in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marker {
    /// Its name.
    pub name: String,
    /// Byte offset of its instruction in the file.
    pub offset: u64,
    /// How to get at its arguments.
    pub arguments: Vec<SiteArg>,
}

/// The probes of `provider` in a file with these bytes, or what is wrong with it.
pub fn markers(image: &[u8], provider: &str) -> Result<Vec<Marker>, String> {
    let header = Header::parse(image).map_err(|_| "it is no ELF file of 64 bits".to_owned())?;
    let endian = header.endian().map_err(|_| "it is not of this machine's byte order".to_owned())?;
    if header.e_machine(endian) != elf::EM_X86_64 {
        return Err("it is not for x86-64".to_owned());
    }
    let damaged = |e: object::read::Error| format!("it is damaged: {e}");
    let sections = header.sections(endian, image).map_err(damaged)?;
    let Some((_, section)) = sections.section_by_name(endian, SECTION) else { return Ok(Vec::new()) };
    let base = sections.section_by_name(endian, BASE).map(|(_, base)| base.sh_addr(endian));
    let segments = header.program_headers(endian, image).map_err(damaged)?;
    let mut found = Vec::new();
    let Some(mut notes) = section.notes(endian, image).map_err(damaged)? else {
        return Err("its probes are in a section of another kind".to_owned());
    };
    while let Some(note) = notes.next().map_err(damaged)? {
        if note.name() != OWNER || note.n_type(endian) != KIND {
            continue;
        }
        let note = Note::parse(note.desc()).ok_or("a probe's note is cut off")?;
        if note.provider != provider.as_bytes() {
            continue;
        }
        let name = String::from_utf8(note.name.to_vec()).map_err(|_| "a probe's name is no text")?;
        let wrong = |what: String| format!("probe {name}: {what}");
        if note.semaphore != 0 {
            return Err(wrong("it wants to be told that somebody is attached".to_owned()));
        }
        let moved = base.map_or(0, |base| base.wrapping_sub(note.base));
        let address = note.location.wrapping_add(moved);
        let offset = segments
            .iter()
            .filter(|s| s.p_type(endian) == elf::PT_LOAD && s.p_flags(endian) & elf::PF_X != 0)
            .find_map(|s| {
                let inside = address.checked_sub(s.p_vaddr(endian)).filter(|at| *at < s.p_filesz(endian))?;
                inside.checked_add(s.p_offset(endian))
            });
        let code = offset.and_then(|offset| image.get(usize::try_from(offset).ok()?));
        // Anything else would be changed in the middle of an instruction.
        let (Some(offset), Some(&NOP)) = (offset, code) else {
            return Err(wrong("where it should be is no such instruction".to_owned()));
        };
        let text = std::str::from_utf8(note.arguments).map_err(|_| wrong("no text".to_owned()))?;
        let arguments = arguments::parse(text).map_err(wrong)?;
        found.push(Marker { name, offset, arguments });
    }
    Ok(found)
}

/// What a note says: three addresses, then three strings.
struct Note<'a> {
    location: u64,
    base: u64,
    semaphore: u64,
    provider: &'a [u8],
    name: &'a [u8],
    arguments: &'a [u8],
}

impl<'a> Note<'a> {
    fn parse(bytes: &'a [u8]) -> Option<Self> {
        let (addresses, strings) = bytes.split_at_checked(24)?;
        let mut addresses =
            addresses.chunks_exact(8).filter_map(|a| Some(u64::from_le_bytes(a.try_into().ok()?)));
        let (location, base, semaphore) = (addresses.next()?, addresses.next()?, addresses.next()?);
        let mut strings = strings.split(|b| *b == 0);
        let (provider, name, arguments) = (strings.next()?, strings.next()?, strings.next()?);
        // The last one is terminated, too, and nothing comes behind it.
        let end = strings.next()?;
        (end.is_empty() && strings.all(<[u8]>::is_empty)).then_some(Note {
            location,
            base,
            semaphore,
            provider,
            name,
            arguments,
        })
    }
}

#[cfg(test)]
#[path = "notes_tests.rs"]
mod tests;
