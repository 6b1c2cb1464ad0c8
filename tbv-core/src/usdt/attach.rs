//! Attaching to the probes of a file.

use std::{
    collections::BTreeSet,
    fs::File,
    io::Read as _,
    os::{fd::AsRawFd as _, unix::fs::MetadataExt as _, unix::fs::OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use aya::{
    Ebpf,
    maps::Array,
    programs::{
        UProbe,
        uprobe::{UProbeAttachLocation, UProbeAttachPoint, UProbeScope},
    },
};
use tbv_common::{MAX_SITES, SITE_ARGS, Site};
use tbv_proto::{FALL_BACK, OVERFLOW, POLL_EMPTY, POLL_HIT, PROBE_PROVIDER, PROBES};

use super::{Marker, markers};
use crate::{
    attach::{program, reason},
    error::{Error, Result},
};

/// The programs, which are named like their probes.
pub(crate) const PROGRAMS: [&str; 4] = [POLL_HIT, POLL_EMPTY, OVERFLOW, FALL_BACK];
/// Bytes of the largest file that is looked at.
const MOST_BYTES: u64 = 1 << 28;

/// What to say of a driver's event that a program does not attach to; its own words tell nothing.
pub(crate) fn without_ring_first(reason: &str) -> String {
    format!(
        "{reason}; to follow what is polled in user space, the driver's events have to carry `ring_first`: a driver \
         from before it had probes can be traced without them only"
    )
}

/// What to say where the driver's events cannot be counted.
pub(crate) fn without_driver(files: &[PathBuf]) -> Error {
    let path = files.first().map(|path| path.display().to_string()).unwrap_or_default();
    let reason =
        "thunderbolt_ibverbs is not loaded, or not of this tbv's kind: without its events no queue is known";
    Error::Usdt { path, reason: reason.to_owned() }
}

/// Attaches to the probes in each of `files`, in every process.
pub(crate) fn attach(ebpf: &mut Ebpf, files: &[PathBuf]) -> Result<()> {
    let (mut seen, mut next) = (BTreeSet::new(), 0);
    for path in files {
        let fail = |reason: String| Error::Usdt { path: path.display().to_string(), reason };
        let library = Library::open(path).map_err(fail)?;
        // Under two names it would count twice.
        if seen.insert(library.identity) {
            attach_to(ebpf, &library, &mut next).map_err(fail)?;
        }
    }
    Ok(())
}

/// A file with all probes.
struct Library {
    /// Kept open, so that what is attached to is what was read.
    file: File,
    identity: (u64, u64),
    markers: Vec<Marker>,
}

impl Library {
    fn open(path: &Path) -> Result<Self, String> {
        // Not to wait for a writer, should it be a pipe.
        let file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path);
        let file = file.map_err(|e| e.to_string())?;
        let about = file.metadata().map_err(|e| e.to_string())?;
        if !about.is_file() || about.len() > MOST_BYTES {
            return Err("not a library".to_owned());
        }
        let mut image = Vec::new();
        (&file).take(MOST_BYTES).read_to_end(&mut image).map_err(|e| e.to_string())?;
        let markers = known(markers(&image, PROBE_PROVIDER)?)?;
        Ok(Library { file, identity: (about.dev(), about.ino()), markers })
    }
}

/// Those that there are programs for: each at least once, with the arguments that its program reads.
fn known(mut markers: Vec<Marker>) -> Result<Vec<Marker>, String> {
    for (name, arguments) in PROBES {
        let mut there = markers.iter().filter(|marker| marker.name == name).peekable();
        if there.peek().is_none() {
            return Err(format!(
                "it has no probe {PROBE_PROVIDER}:{name}: it is not our provider, or one from before it had probes"
            ));
        }
        if there.any(|marker| marker.arguments.len() < arguments) {
            return Err(format!("its probe {name} has less than {arguments} arguments"));
        }
    }
    markers.retain(|marker| PROBES.iter().any(|(name, _)| *name == marker.name));
    Ok(markers)
}

fn attach_to(ebpf: &mut Ebpf, library: &Library, next: &mut u32) -> Result<(), String> {
    let path = PathBuf::from(format!("/proc/self/fd/{}", library.file.as_raw_fd()));
    for marker in &library.markers {
        if *next >= MAX_SITES {
            return Err(format!("it has probes in more than {MAX_SITES} places, or those before it have"));
        }
        let mut site = Site::default();
        for (to, from) in site.args.iter_mut().zip(marker.arguments.iter().take(SITE_ARGS)) {
            *to = *from;
        }
        let map = ebpf.map_mut("PROBE_SITES").ok_or("PROBE_SITES is missing")?;
        let mut sites = Array::<_, Site>::try_from(map).map_err(|e| e.to_string())?;
        sites.set(*next, site, 0).map_err(|e| e.to_string())?;
        let probe: &mut UProbe = program(ebpf, &marker.name)?;
        if probe.fd().is_err() {
            probe.load().map_err(|e| reason(&e))?;
        }
        let point = UProbeAttachPoint {
            location: UProbeAttachLocation::AbsoluteOffset(marker.offset),
            cookie: Some((*next).into()),
        };
        probe.attach(point, &path, UProbeScope::AllProcesses).map_err(|e| reason(&e))?;
        *next += 1;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use tbv_common::SiteArg;

    use super::*;

    fn marker(name: &str, arguments: usize) -> Marker {
        Marker { name: name.to_owned(), offset: 1, arguments: vec![SiteArg::default(); arguments] }
    }

    #[test]
    fn programs_are_named_like_their_probes() {
        assert_eq!(PROGRAMS.to_vec(), PROBES.map(|(name, _)| name).to_vec());
        assert!(PROBES.iter().all(|(_, arguments)| *arguments <= SITE_ARGS));
    }

    #[test]
    fn a_library_without_all_probes_is_refused() {
        let all: Vec<_> = PROBES.iter().map(|(name, arguments)| marker(name, *arguments)).collect();
        assert_eq!(known(all.clone()).as_deref(), Ok(&all[..]));
        // Several of one, later arguments, and probes that came later.
        let more = [all.clone(), vec![marker(POLL_HIT, 6), marker("later", 0)]].concat();
        assert_eq!(known(more).map(|markers| markers.len()), Ok(5));
        assert!(known(all[1..].to_vec()).unwrap_err().contains("no probe usb4_rdma:poll_hit"));
        let fewer = [all, vec![marker(POLL_HIT, 3)]].concat();
        assert!(known(fewer).unwrap_err().contains("poll_hit has less than 4"));
        assert!(known(Vec::new()).is_err());
    }

    #[test]
    fn a_file_that_is_none_is_refused() {
        assert!(Library::open(Path::new("/nowhere")).is_err());
        assert!(Library::open(Path::new("/dev/null")).is_err_and(|e| e == "not a library"));
        assert!(Library::open(Path::new("/")).is_err());
        // Any program will do that has none of our probes.
        let own = std::env::current_exe().unwrap();
        assert!(Library::open(&own).is_err_and(|e| e.contains("no probe usb4_rdma")));
    }
}
