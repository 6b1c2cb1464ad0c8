//! The virtual machine's command line and the file descriptors it inherits.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io::{self, Write},
    os::{
        fd::{AsRawFd, FromRawFd, OwnedFd, RawFd},
        unix::{net::UnixStream, process::CommandExt},
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use anyhow::{Context, Result};

use super::{accel::Accel, job};

/// The program.
pub(super) const PROGRAM: &str = "qemu-system-x86_64";

/// A machine to boot.
pub(super) struct Machine<'a> {
    pub(super) accel: Accel,
    pub(super) cpus: u32,
    pub(super) memory: &'a str,
    pub(super) kernel: PathBuf,
    pub(super) initramfs: Vec<u8>,
    /// More words for the kernel's command line.
    pub(super) append: &'a str,
    /// The kernel log's file.
    pub(super) log: &'a Path,
    /// Host folders that the guest writes through to.
    pub(super) shares: &'a [PathBuf],
}

/// A booted machine and our ends of its ports. Dropping it kills the machine.
pub(super) struct Running {
    pub(super) child: Child,
    pub(super) terminal: UnixStream,
    pub(super) control: UnixStream,
    pub(super) stdout: UnixStream,
    pub(super) stderr: UnixStream,
}

impl Drop for Running {
    fn drop(&mut self) {
        // Already gone is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Machine<'_> {
    /// Boots it.
    pub(super) fn start(&self) -> Result<Running> {
        let image = memory_file(&self.initramfs).context("cannot hold the initramfs in memory")?;
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..PORTS.len() {
            let (our, their) = UnixStream::pair().context("cannot make a socket pair")?;
            ours.push(our);
            theirs.push(their);
        }
        let ports: Vec<RawFd> = theirs.iter().map(AsRawFd::as_raw_fd).collect();
        let mut command = Command::new(PROGRAM);
        command.args(self.arguments(image.as_raw_fd(), &ports));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        // Ctrl-C at the terminal is ours to handle.
        command.process_group(0);
        let inherited: Vec<RawFd> = ports.iter().copied().chain([image.as_raw_fd()]).collect();
        // SAFETY: between fork and exec the closure makes system calls only; it allocates nothing.
        unsafe { command.pre_exec(move || prepare(&inherited)) };
        let child =
            command.spawn().with_context(|| format!("cannot start {PROGRAM}; run `cargo xtask setup`"))?;
        let [terminal, control, stdout, stderr] = <[UnixStream; PORTS.len()]>::try_from(ours)
            .map_err(|_| anyhow::anyhow!("wrong number of ports"))?;
        Ok(Running { child, terminal, control, stdout, stderr })
    }

    fn arguments(&self, image: RawFd, ports: &[RawFd]) -> Vec<OsString> {
        let mut args: Vec<OsString> = Vec::new();
        let mut add = |words: &[&OsStr]| args.extend(words.iter().map(|word| word.to_os_string()));
        let plain = |text: &str| OsString::from(text);

        add(&["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-machine", "q35"]
            .map(OsStr::new));
        add(&self.accel.arguments().map(OsStr::new));
        add(&["-smp".as_ref(), plain(&self.cpus.to_string()).as_ref(), "-m".as_ref(), self.memory.as_ref()]);
        add(&["-kernel".as_ref(), self.kernel.as_ref()]);
        add(&["-initrd".as_ref(), plain(&format!("/proc/self/fd/{image}")).as_ref()]);
        add(&["-append".as_ref(), plain(&format!("{KERNEL_COMMAND_LINE} {}", self.append)).as_ref()]);

        let log = option("file,id=log,path=", self.log, "");
        add(&["-chardev".as_ref(), &log, "-serial".as_ref(), "chardev:log".as_ref()]);
        add(&["-device", "virtio-serial-pci"].map(OsStr::new));
        for (number, (name, fd)) in PORTS.iter().zip(ports).enumerate() {
            // Port 0 is the one that may be a terminal.
            let kind = if number == 0 { "virtconsole" } else { "virtserialport" };
            add(&["-chardev".as_ref(), plain(&format!("socket,id={name},fd={fd}")).as_ref()]);
            add(&[
                "-device".as_ref(),
                plain(&format!("{kind},nr={number},chardev={name},name={name}")).as_ref(),
            ]);
        }

        let mut share = |path: &Path, tag: &str, options: &str| {
            let filesystem =
                option(&format!("local,id={tag},path="), path, &format!(",multidevs=remap,{options}"));
            let device = format!("virtio-9p-pci,fsdev={tag},mount_tag={tag}");
            args.extend(["-fsdev".into(), filesystem, "-device".into(), device.into()]);
        };
        share(Path::new("/"), "root", "security_model=none,readonly=on");
        for (number, path) in self.shares.iter().enumerate() {
            share(path, &job::share_tag(number), "security_model=none");
        }
        args
    }
}

/// The ports, in the order of their numbers in the guest.
const PORTS: [&str; 4] = ["terminal", "control", "stdout", "stderr"];

/// The log goes to the serial port, which works until the last breath. A broken kernel ends the
/// machine at once (QEMU does not reboot) instead of hanging until the time is up. The rest saves
/// time at boot, and the clock's watchdog would only see how busy the host is.
const KERNEL_COMMAND_LINE: &str =
    "console=ttyS0 panic=-1 oops=panic cryptomgr.notests audit=0 no_timer_check tsc=reliable";

/// `before` + path + `after` as one QEMU option, where a comma is written twice.
fn option(before: &str, path: &Path, after: &str) -> OsString {
    let mut option = OsString::from(before);
    // Only a path that is not UTF-8 can lose anything here; QEMU then says that it is not there.
    option.push(path.to_string_lossy().replace(',', ",,"));
    option.push(after);
    option
}

/// Runs in the child just before it becomes QEMU.
fn prepare(inherited: &[RawFd]) -> io::Result<()> {
    // SAFETY: prctl with these arguments reads no memory.
    if unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) } != 0 {
        return Err(io::Error::last_os_error());
    }
    for &fd in inherited {
        // SAFETY: fcntl on a descriptor of ours, which stays open until exec.
        if unsafe { libc::fcntl(fd, libc::F_SETFD, 0) } != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// A file without a name: nothing is left behind, however we end.
fn memory_file(content: &[u8]) -> io::Result<File> {
    // SAFETY: the name is a valid C string, and the result is checked.
    let fd = unsafe { libc::memfd_create(c"initramfs".as_ptr(), libc::MFD_CLOEXEC) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new and nobody else's.
    let mut file = File::from(unsafe { OwnedFd::from_raw_fd(fd) });
    file.write_all(content)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_carry_the_options() {
        let machine = Machine {
            accel: Accel::Tcg,
            cpus: 3,
            memory: "512M",
            kernel: "/k".into(),
            initramfs: Vec::new(),
            append: "lockdown=confidentiality",
            log: Path::new("/a,b.log"),
            shares: &["/out".into()],
        };
        let args = machine.arguments(9, &[10, 11, 12, 13]);
        let text = args.join(OsStr::new(" ")).into_string().unwrap();
        for part in [
            "-smp 3 -m 512M",
            "-initrd /proc/self/fd/9",
            " lockdown=confidentiality -chardev",
            "path=/a,,b.log ",
            "socket,id=control,fd=11 -device virtserialport,nr=1,chardev=control",
            "local,id=root,path=/,multidevs=remap,security_model=none,readonly=on",
            "local,id=share0,path=/out,multidevs=remap,security_model=none -device",
            "thread=single",
            "-cpu qemu64,cx16=off,smap=on,smep=on ",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }
}
