//! Attaches fentry and fexit programs to a module's functions, which aya does not: the
//! program has to be loaded with a reference to the module's BTF.

use std::{
    collections::HashSet,
    io,
    os::fd::{AsRawFd, OwnedFd, RawFd},
};

use aya_obj::{
    Object,
    generated::{bpf_attach_type, bpf_btf_info, bpf_cmd, bpf_prog_type},
};

use crate::sys::{attr, bpf, bpf_fd};

/// Room for the verifier's explanation.
const LOG_BYTES: usize = 1 << 20;

/// Why it did not work.
#[derive(Debug, thiserror::Error)]
pub enum ModuleFentryError {
    /// The embedded object is not what this version expects.
    #[error("the eBPF object: {0}")]
    Object(String),
    /// The module is not loaded, or has no BTF.
    #[error("module {0} has no BTF")]
    NoBtf(String),
    /// The verifier's last words.
    #[error("loading {program}: {error}{log}")]
    Load {
        /// The program's name.
        program: String,
        /// What bpf(2) answered.
        error: io::Error,
        /// The end of the verifier's log, or nothing.
        log: String,
    },
    /// Another bpf(2) command failed.
    #[error("{0}: {1}")]
    Command(&'static str, io::Error),
}

/// A loaded and attached program. Dropping it detaches.
#[derive(Debug)]
pub(crate) struct Attached {
    /// The program.
    pub(crate) program: OwnedFd,
    _link: OwnedFd,
}

/// Loads programs of one object against one module, sharing the maps that aya created.
pub(crate) struct Loader {
    object: Object,
    module_btf: OwnedFd,
}

impl Loader {
    /// `maps`: name and descriptor of every map in `elf`.
    pub(crate) fn new(elf: &[u8], maps: &[(String, RawFd)], module: &str) -> Result<Self, ModuleFentryError> {
        let bad = |e: &dyn std::fmt::Display| ModuleFentryError::Object(e.to_string());
        let mut object = Object::parse(elf).map_err(|e| bad(&e))?;
        let text: HashSet<usize> = object.functions.keys().map(|(section, _)| *section).collect();
        let known = object.maps.clone();
        let maps = maps.iter().filter_map(|(name, fd)| Some((name.as_str(), *fd, known.get(name)?)));
        object.relocate_maps(maps, &text).map_err(|e| bad(&e))?;
        object.relocate_calls(&text).map_err(|e| bad(&e))?;
        Ok(Loader { object, module_btf: module_btf(module)? })
    }

    /// Loads `name` for the function with BTF id `function` and attaches it.
    pub(crate) fn attach(
        &self,
        name: &str,
        function: u32,
        kind: bpf_attach_type,
    ) -> Result<Attached, ModuleFentryError> {
        let missing = || ModuleFentryError::Object(format!("no program {name}"));
        let program = self.object.programs.get(name).ok_or_else(missing)?;
        let code = self.object.functions.get(&program.function_key()).ok_or_else(missing)?;
        let mut log = vec![0u8; LOG_BYTES];
        let mut attr = attr();
        // SAFETY: writes to a union of plain integers.
        let load = unsafe { &mut attr.__bindgen_anon_3 };
        load.prog_type = bpf_prog_type::BPF_PROG_TYPE_TRACING as u32;
        load.expected_attach_type = kind as u32;
        load.insns = code.instructions.as_ptr() as u64;
        load.insn_cnt = code.instructions.len() as u32;
        load.license = program.license.as_ptr() as u64;
        load.attach_btf_id = function;
        load.__bindgen_anon_1.attach_btf_obj_fd = self.module_btf.as_raw_fd() as u32;
        for (to, from) in load.prog_name.iter_mut().take(15).zip(name.bytes()) {
            *to = from as _;
        }
        // First without a log: asking for one makes the verifier slow.
        let program = bpf_fd(bpf_cmd::BPF_PROG_LOAD, &mut attr).or_else(|_| {
            // SAFETY: as above.
            let load = unsafe { &mut attr.__bindgen_anon_3 };
            load.log_buf = log.as_mut_ptr() as u64;
            load.log_size = log.len() as u32;
            load.log_level = 1;
            bpf_fd(bpf_cmd::BPF_PROG_LOAD, &mut attr).map_err(|error| ModuleFentryError::Load {
                program: name.to_owned(),
                error,
                log: last_lines(&log),
            })
        })?;
        let mut attr = crate::sys::attr();
        attr.raw_tracepoint.prog_fd = program.as_raw_fd() as u32;
        let link = bpf_fd(bpf_cmd::BPF_RAW_TRACEPOINT_OPEN, &mut attr)
            .map_err(|e| ModuleFentryError::Command("attaching", e))?;
        Ok(Attached { program, _link: link })
    }
}

fn last_lines(log: &[u8]) -> String {
    let text = String::from_utf8_lossy(log.split(|b| *b == 0).next().unwrap_or_default()).into_owned();
    let lines: Vec<&str> = text.lines().collect();
    lines.iter().skip(lines.len().saturating_sub(5)).map(|line| format!("\n  {line}")).collect()
}

/// The descriptor of a module's BTF, found by going through all BTF objects.
fn module_btf(module: &str) -> Result<OwnedFd, ModuleFentryError> {
    let failed = |what| move |e| ModuleFentryError::Command(what, e);
    let mut id = 0;
    loop {
        let mut next = attr();
        next.__bindgen_anon_6.__bindgen_anon_1.start_id = id;
        if let Err(e) = bpf(bpf_cmd::BPF_BTF_GET_NEXT_ID, &mut next) {
            if e.raw_os_error() == Some(libc::ENOENT) {
                return Err(ModuleFentryError::NoBtf(module.to_owned()));
            }
            return Err(failed("listing BTF objects")(e));
        }
        // SAFETY: the command filled this member.
        id = unsafe { next.__bindgen_anon_6.next_id };
        let mut get = attr();
        get.__bindgen_anon_6.__bindgen_anon_1.btf_id = id;
        let Ok(fd) = bpf_fd(bpf_cmd::BPF_BTF_GET_FD_BY_ID, &mut get) else { continue };
        let mut name = [0u8; 64];
        // SAFETY: a C struct of integers.
        let mut info: bpf_btf_info = unsafe { std::mem::zeroed() };
        info.name = name.as_mut_ptr() as u64;
        info.name_len = name.len() as u32;
        let mut ask = attr();
        ask.info.bpf_fd = fd.as_raw_fd() as u32;
        ask.info.info = &raw mut info as u64;
        ask.info.info_len = size_of_val(&info) as u32;
        bpf(bpf_cmd::BPF_OBJ_GET_INFO_BY_FD, &mut ask).map_err(failed("describing a BTF object"))?;
        if info.kernel_btf != 0 && name.split(|b| *b == 0).next() == Some(module.as_bytes()) {
            return Ok(fd);
        }
    }
}
