//! Whose calls count, from what a user names to what the eBPF programs compare.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
};

use tbv_common::{COMM_LEN, Config, MAX_DEVICES, Whoami};

use crate::{cgroups, devices::Devices, error::Error};

/// Conditions that all have to hold. Empty: every process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Descendants of the calling process.
    pub descendants: bool,
    /// Processes with these ids, in the caller's pid namespace, and what they start from now on.
    pub pids: Vec<u32>,
    /// Processes of this name, cut to 15 bytes as the kernel does. The name at the first call counts.
    pub comm: Option<String>,
    /// Calls made in this cgroup (version 2) or below it: a folder, or a path as in /proc/PID/cgroup.
    pub cgroup: Option<PathBuf>,
    /// Calls on these RDMA devices.
    pub devices: Vec<String>,
}

/// Ids that go into the target maps.
#[derive(Debug, Default)]
pub(crate) struct Targets {
    /// In the initial pid namespace.
    pub(crate) initial: Vec<u32>,
    /// In ours, if that is another.
    pub(crate) ours: Vec<u32>,
}

impl Filter {
    /// What it leaves out, in the words of the command line; empty if it leaves nothing out.
    pub fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        if !self.pids.is_empty() {
            let pids: Vec<String> = self.pids.iter().map(u32::to_string).collect();
            words.push(format!("--pid {}", pids.join(",")));
        }
        words.extend(self.comm.iter().map(|comm| format!("--comm {comm}")));
        words.extend(self.cgroup.iter().map(|path| format!("--cgroup {}", path.display())));
        if !self.devices.is_empty() {
            words.push(format!("--dev {}", self.devices.join(",")));
        }
        words
    }

    /// Fills in `config`, whose offsets are known by now.
    pub(crate) fn apply(
        &self,
        config: &mut Config,
        who: &Whoami,
        devices: &Devices,
    ) -> Result<Targets, Error> {
        let mut targets = Targets::default();
        if self.descendants {
            targets.initial.push((who.pid_tgid >> 32) as u32);
        }
        if !self.pids.is_empty() {
            let pids = self.pids.iter().map(|pid| process_of(*pid)).collect::<Result<Vec<_>, _>>()?;
            if in_initial_namespace(config, who)? {
                targets.initial.extend(pids);
            } else {
                (config.own_ns, config.own_level) = (who.pid_ns, who.ns_level);
                targets.ours = pids;
            }
        }
        let only_targets = self.descendants || !self.pids.is_empty();
        (config.only_targets, config.follow) = (only_targets.into(), only_targets.into());
        if let Some(comm) = &self.comm {
            for (to, from) in config.comm.iter_mut().take(COMM_LEN - 1).zip(comm.bytes()) {
                *to = from;
            }
        }
        if let Some(path) = &self.cgroup {
            config.cgroup = cgroups::id_of(Path::new("/"), path).map_err(Error::Filter)?;
        }
        self.apply_devices(config, devices)?;
        Ok(targets)
    }

    /// Whether what process `pid` has had on `device` since before counts, as what it does from now on will; `targets`
    /// are the ids in the target map, and `root` is normally `/`.
    pub(crate) fn wants(&self, root: &Path, pid: u32, device: &str, targets: &BTreeSet<u32>) -> bool {
        let only_targets = self.descendants || !self.pids.is_empty();
        (!only_targets || targets.contains(&pid))
            && (self.devices.is_empty() || self.devices.iter().any(|name| name == device))
            && self.comm.as_ref().is_none_or(|comm| is_called(root, pid, comm))
            && self.cgroup.as_ref().is_none_or(|cgroup| cgroups::holds(root, cgroup, pid))
    }

    fn apply_devices(&self, config: &mut Config, devices: &Devices) -> Result<(), Error> {
        if self.devices.is_empty() {
            return Ok(());
        }
        if config.files_known == 0 {
            return Err(Error::Filter(
                "the device of a call cannot be told here: this kernel shows no BTF (/sys/kernel/btf/vmlinux)"
                    .to_owned(),
            ));
        }
        if self.devices.len() > MAX_DEVICES {
            return Err(Error::Filter(format!("at most {MAX_DEVICES} devices can be named")));
        }
        config.only_devices = self.devices.len() as u32;
        for (to, name) in config.devices.iter_mut().zip(&self.devices) {
            let found = devices.iter().find(|(_, device)| device.name == *name);
            let (number, _) = found.ok_or_else(|| no_device(name, devices))?;
            *to = *number;
        }
        Ok(())
    }
}

fn no_device(name: &str, devices: &Devices) -> Error {
    let known: Vec<&str> = devices.values().map(|device| device.name.as_str()).collect();
    let known =
        if known.is_empty() { "there is none".to_owned() } else { format!("there are {}", known.join(", ")) };
    Error::Filter(format!("no RDMA device is called {name}; {known}"))
}

/// Whether a process has this name now, as far as the kernel keeps it.
fn is_called(root: &Path, pid: u32, name: &str) -> bool {
    let kept = name.as_bytes().get(..COMM_LEN - 1).unwrap_or(name.as_bytes());
    let comm = fs::read(root.join(format!("proc/{pid}/comm"))).unwrap_or_default();
    kept.is_empty() || comm.strip_suffix(b"\n").unwrap_or(&comm) == kept
}

/// The process of a process or thread id.
pub fn process_of(pid: u32) -> Result<u32, Error> {
    match fs::read_to_string(format!("/proc/{pid}/status")) {
        Ok(status) => Ok(thread_group(&status).unwrap_or(pid)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            Err(Error::Filter(format!("there is no process {pid}")))
        }
        Err(e) => Err(Error::Filter(format!("process {pid}: {e}"))),
    }
}

fn thread_group(status: &str) -> Option<u32> {
    status.lines().find_map(|line| line.strip_prefix("Tgid:"))?.trim().parse().ok()
}

/// Whether process ids mean here what they mean to the kernel.
pub(crate) fn in_initial_namespace(config: &Config, who: &Whoami) -> Result<bool, Error> {
    if config.ids_known != 0 && who.pid_ns != 0 {
        return Ok(who.ns_level == 0);
    }
    if (who.pid_tgid >> 32) as u32 == std::process::id() {
        return Ok(true);
    }
    Err(Error::Filter(
        "process ids cannot be understood in this pid namespace: the kernel shows no BTF \
         (/sys/kernel/btf/vmlinux); give the ids outside of the container"
            .to_owned(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_stands_for_its_process() {
        assert_eq!(thread_group("Name:\tx\nTgid:\t77\nPid:\t78\n"), Some(77));
        assert_eq!(process_of(std::process::id()).unwrap(), std::process::id());
        assert!(process_of(u32::MAX - 1).unwrap_err().to_string().contains("no process"));
    }

    #[test]
    fn devices_need_btf_and_a_name_that_exists() {
        let filter = Filter { devices: vec!["rxe7".to_owned()], ..Filter::default() };
        let mut config = Config::default();
        let who = Whoami::default();
        let error = filter.apply(&mut config, &who, &Devices::new()).unwrap_err();
        assert!(error.to_string().contains("BTF"));
        config.files_known = 1;
        let error = filter.apply(&mut config, &who, &Devices::new()).unwrap_err();
        assert!(error.to_string().contains("no RDMA device is called rxe7; there is none"));
    }

    #[test]
    fn long_names_are_cut_as_the_kernel_does() {
        let filter = Filter { comm: Some("a-name-of-twenty-one-c".to_owned()), ..Filter::default() };
        let mut config = Config::default();
        filter.apply(&mut config, &Whoami::default(), &Devices::new()).unwrap();
        assert_eq!(&config.comm, b"a-name-of-twent\0");
        assert_eq!(config.only_targets, 0);
    }
    #[test]
    fn what_existed_counts_if_all_conditions_hold() {
        let root = std::env::temp_dir().join(format!("tbv-wants-{}", std::process::id()));
        let cgroup = root.join("sys/fs/cgroup/a.slice/b");
        fs::create_dir_all(&cgroup).unwrap();
        fs::create_dir_all(root.join("proc/self")).unwrap();
        fs::write(root.join("proc/self/mountinfo"), "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n")
            .unwrap();
        for (pid, comm, cgroup) in [(7, "a-name-of-twent", "/a.slice/b"), (8, "other", "/")] {
            let proc = root.join(format!("proc/{pid}"));
            fs::create_dir_all(&proc).unwrap();
            fs::write(proc.join("comm"), format!("{comm}\n")).unwrap();
            fs::write(proc.join("cgroup"), format!("1:name=x:/\n0::{cgroup}\n")).unwrap();
        }
        let wanted = |filter: Filter| {
            let wants = |pid| filter.wants(&root, pid, "rxe0", &BTreeSet::from([8]));
            [7, 8, 9].map(wants)
        };
        let all = Filter::default;
        assert_eq!(wanted(all()), [true; 3]);
        assert_eq!(wanted(Filter { pids: vec![8], ..all() }), [false, true, false]);
        assert_eq!(wanted(Filter { descendants: true, ..all() }), [false, true, false]);
        assert_eq!(wanted(Filter { devices: vec!["rxe1".to_owned()], ..all() }), [false; 3]);
        assert_eq!(
            wanted(Filter { devices: vec!["rxe1".to_owned(), "rxe0".to_owned()], ..all() }),
            [true; 3]
        );
        let comm = Some("a-name-of-twenty-one-c".to_owned());
        assert_eq!(wanted(Filter { comm: comm.clone(), ..all() }), [true, false, false]);
        assert_eq!(wanted(Filter { comm: Some("othe".to_owned()), ..all() }), [false; 3]);
        assert_eq!(wanted(Filter { comm: Some(String::new()), ..all() }), [true; 3]);
        for (path, seven, eight) in
            [("/", true, true), ("/a.slice", true, false), ("/a.slice/b", true, false)]
        {
            let filter = Filter { cgroup: Some(path.into()), ..all() };
            assert_eq!(wanted(filter), [seven, eight, false], "{path}");
        }
        assert_eq!(wanted(Filter { cgroup: Some("/gone".into()), ..all() }), [false; 3]);
        assert_eq!(wanted(Filter { comm, pids: vec![8], ..all() }), [false; 3]);
        fs::remove_dir_all(&root).unwrap();
    }
}
