//! What one run hands to its guest: settings, writable shares and the command as a shell script.

use std::{
    env,
    ffi::{OsStr, OsString},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

/// Variables that mean the same in the guest; each also stands for those it is a prefix of when
/// it ends with an underscore.
const KEPT: [&str; 13] = [
    "TERM",
    "COLORTERM",
    "NO_COLOR",
    "LANG",
    "LC_",
    "USER",
    "LOGNAME",
    "RUST_",
    "TBV_",
    "AYA_",
    "IBV_",
    "RDMAV_",
    "USB4_",
];

/// Where root's programs lie, whatever PATH the host's user has.
const SYSTEM_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// One quoted word of a shell script.
fn quote(word: &OsStr) -> Vec<u8> {
    let mut quoted = vec![b'\''];
    for &byte in word.as_bytes() {
        match byte {
            b'\'' => quoted.extend(b"'\\''"),
            byte => quoted.push(byte),
        }
    }
    quoted.push(b'\'');
    quoted
}

fn assignment(name: &str, value: &OsStr) -> Vec<u8> {
    [name.as_bytes(), b"=", &quote(value), b"\n"].concat()
}

/// What the guest's scripts read.
pub(crate) struct Settings<'a> {
    /// Folder that becomes writable in memory, like /tmp.
    pub(crate) home: Option<&'a Path>,
    /// Folder of the cached kernel's modules.
    pub(crate) kernel_lib: &'a Path,
    /// Marks the end of an output stream.
    pub(crate) token: &'a str,
    /// Rows and columns of the terminal, if there is one.
    pub(crate) terminal: Option<(u16, u16)>,
}

impl Settings<'_> {
    pub(crate) fn script(&self) -> Vec<u8> {
        let terminal = self.terminal.map(|(rows, columns)| format!("rows {rows} cols {columns}"));
        [
            assignment("home", self.home.unwrap_or(Path::new("")).as_os_str()),
            assignment("kernel_lib", self.kernel_lib.as_os_str()),
            assignment("token", OsStr::new(self.token)),
            assignment("terminal", OsStr::new(&terminal.unwrap_or_default())),
        ]
        .concat()
    }
}

/// Mounts the writable shares where they lie on the host.
pub(crate) fn mounts(shares: &[PathBuf]) -> Vec<u8> {
    let mut script = Vec::new();
    for (number, dir) in shares.iter().enumerate() {
        // mmap: written pages reach the host, at the latest when the guest syncs before it ends.
        let options = "trans=virtio,version=9p2000.L,msize=512000,cache=mmap";
        script.extend(format!("mount -t 9p -o {options} {} ", share_tag(number)).bytes());
        script.extend(quote(dir.as_os_str()));
        script.push(b'\n');
    }
    script
}

/// The name that host and guest know the n-th writable share by.
pub(crate) fn share_tag(number: usize) -> String {
    format!("share{number}")
}

/// Loads our driver with one cable, waits for its device files, and tells libibverbs where our
/// provider is.
fn load(module: &Path, programs: &Path) -> Vec<u8> {
    let mut script = b"modprobe ib_uverbs && insmod ".to_vec();
    script.extend(quote(module.as_os_str()));
    script.extend(
        b" loop=1 || { echo 'xtask: cannot load the driver; build it, or leave it out by --no-kmod' >&2; exit 125; }\n\
        until [ -e /dev/infiniband/uverbs1 ]; do sleep 0.05; done\nexport ",
    );
    script.extend(assignment("TBV_KMOD", module.as_os_str()));
    script.extend(b"export ");
    script.extend(assignment("IBV_DRIVERS", programs.join("libusb4_rdma").as_os_str()));
    script
}

/// The command, with the caller's folder and environment.
///
/// `module` is our own driver's, to be loaded before.
pub(crate) fn script(
    command: &[OsString],
    folder: &Path,
    programs: &Path,
    home: &OsStr,
    module: Option<&Path>,
) -> Vec<u8> {
    let mut script = Vec::new();
    let kept = env::vars_os().filter(|(name, _)| is_kept(name));
    for (name, value) in kept {
        script.extend(b"export ");
        script.extend(assignment(&name.to_string_lossy(), &value));
    }
    let mut path = programs.as_os_str().to_owned();
    for more in [env::var_os("PATH").unwrap_or_default(), SYSTEM_PATH.into()] {
        path.push(":");
        path.push(more);
    }
    script.extend(b"export ");
    script.extend(assignment("PATH", &path));
    script.extend(b"export ");
    script.extend(assignment("HOME", home));
    if let Some(module) = module {
        script.extend(load(module, programs));
    }
    script.extend(b"cd ");
    script.extend(quote(folder.as_os_str()));
    script.extend(b" || exit 125\nexec");
    for word in command {
        script.push(b' ');
        script.extend(quote(word));
    }
    script.push(b'\n');
    script
}

fn is_kept(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    plain && KEPT.iter().any(|kept| name == *kept || (kept.ends_with('_') && name.starts_with(kept)))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn words_survive_the_shell() {
        let words: Vec<OsString> =
            ["printf", "%s|", "", "a b", "it's", "$HOME `x` \\", "*\n", "-n"].map(Into::into).into();
        let script = script(&words, Path::new("/"), Path::new("/p"), OsStr::new("/h"), None);
        let output = Command::new("sh").arg("-c").arg(OsStr::from_bytes(&script)).output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), "|a b|it's|$HOME `x` \\|*\n|-n|");
    }

    #[test]
    fn our_programs_come_first_and_home_is_set() {
        let words: Vec<OsString> = ["sh", "-c", "echo $PATH; echo $HOME; pwd"].map(Into::into).into();
        let script = script(&words, Path::new("/usr"), Path::new("/our programs"), OsStr::new("/h"), None);
        let output = Command::new("sh").arg("-c").arg(OsStr::from_bytes(&script)).output().unwrap();
        let output = String::from_utf8(output.stdout).unwrap();
        let lines: Vec<&str> = output.lines().collect();
        assert!(lines[0].starts_with("/our programs:") && lines[0].ends_with("/sbin:/bin"), "{output}");
        assert_eq!(lines[1..], ["/h", "/usr"]);
    }

    #[test]
    fn only_known_variables_are_kept() {
        for name in ["TERM", "LC_ALL", "TBV_FULL", "RUST_BACKTRACE"] {
            assert!(is_kept(OsStr::new(name)), "{name}");
        }
        for name in ["TERMINAL", "LD_LIBRARY_PATH", "CARGO", "HOME", "TBV_BAD-NAME", "BASH_FUNC_x%%"] {
            assert!(!is_kept(OsStr::new(name)), "{name}");
        }
    }

    #[test]
    fn the_driver_is_loaded_before_the_command() {
        let words = [OsString::from("true")];
        let module = Some(Path::new("/k o/m.ko"));
        let script = script(&words, Path::new("/"), Path::new("/p"), OsStr::new("/h"), module);
        let text = String::from_utf8(script).unwrap();
        let load = text.find("insmod '/k o/m.ko' loop=1").unwrap();
        assert!(load < text.find("exec").unwrap());
        assert!(text.contains("IBV_DRIVERS='/p/libusb4_rdma'"));
    }
}
