//! The command of `run`: as whom it runs, and how it starts.

use std::{
    ffi::{CString, OsString},
    io,
    os::unix::process::CommandExt as _,
    process::{Child, Command},
};

use anyhow::{Context as _, Result, bail};
use nix::unistd::{Gid, Uid, User, getgrouplist};

use crate::exit;

/// Who called sudo.
struct Caller {
    user: User,
    groups: Vec<Gid>,
}

impl Caller {
    /// Of this process, if it is root by sudo of someone else.
    fn find() -> Result<Option<Self>> {
        let id = |name| std::env::var(name).ok()?.parse::<u32>().ok();
        let (Some(uid), Some(gid)) = (id("SUDO_UID"), id("SUDO_GID")) else { return Ok(None) };
        if uid == 0 || !Uid::effective().is_root() {
            return Ok(None);
        }
        let found = User::from_uid(Uid::from_raw(uid)).context("looking up SUDO_UID")?;
        let Some(user) = found else {
            bail!("SUDO_UID is {uid}, and there is no such user; --as-root runs the command as root")
        };
        let name = CString::new(user.name.as_str())?;
        let groups = getgrouplist(&name, Gid::from_raw(gid)).context("looking up the groups of SUDO_UID")?;
        Ok(Some(Caller { user: User { gid: Gid::from_raw(gid), ..user }, groups }))
    }

    /// Makes `command` run as them, in their environment.
    fn run_as(self, command: &mut Command) {
        let Caller { user, groups } = self;
        command
            .env("HOME", &user.dir)
            .env("USER", &user.name)
            .env("LOGNAME", &user.name)
            .env("SHELL", &user.shell);
        let change = move || -> io::Result<()> {
            nix::unistd::setgroups(&groups)?;
            nix::unistd::setgid(user.gid)?;
            nix::unistd::setuid(user.uid)?;
            Ok(())
        };
        // SAFETY: makes system calls only; what they need was allocated before the fork.
        unsafe { command.pre_exec(change) };
    }
}

/// Starts the command. The inner error is the exit status for one that could not be started, already
/// explained.
pub(crate) fn start(words: &[OsString], as_root: bool) -> Result<Result<Child, u8>> {
    let Some((program, rest)) = words.split_first() else { bail!("no command given") };
    let mut command = Command::new(program);
    command.args(rest);
    if !as_root && let Some(caller) = Caller::find()? {
        caller.run_as(&mut command);
    }
    Ok(command.spawn().map_err(|error| {
        say!("cannot run {}: {error}", program.to_string_lossy());
        if error.kind() == io::ErrorKind::NotFound { exit::NOT_FOUND } else { exit::NOT_EXECUTABLE }
    }))
}
