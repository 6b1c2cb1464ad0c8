//! Each hook: whether it can be used here, or why not, and the one that is chosen.

use std::path::Path;

use super::{Check, NOT_ALLOWED, Status};
use crate::{
    Filter, Hook, Options, devices,
    loaded::Loaded,
    obstacles::{self, Obstacle},
    tracer, watch,
};

const CHOSEN: &str = "hook in use";

pub(super) fn checks(root: &Path) -> Vec<Check> {
    if tracer::allowed(root).is_err() {
        let not_tried = |hook: Hook| {
            let found = "not tried: this process may not trace on this kernel";
            Check::degraded(hook.name(), found, NOT_ALLOWED)
        };
        let mut checks: Vec<Check> = Hook::ALL.into_iter().map(not_tried).collect();
        checks.push(Check::missing(CHOSEN, "none", NOT_ALLOWED));
        return checks;
    }
    let loaded = devices::uverbs_loaded(root);
    let mut programs = None;
    let results: Vec<_> = watch::ranked(root)
        .into_iter()
        .map(|hook| (hook, result(hook, root, loaded, &mut programs)))
        .collect();
    let chosen = results.iter().find(|(_, result)| result.is_ok()).map(|(hook, _)| *hook);
    let mut checks: Vec<Check> =
        results.into_iter().map(|(hook, result)| check(hook, result, loaded)).collect();
    checks.push(match chosen {
        Some(hook) if loaded => Check::ok(CHOSEN, hook.name()),
        Some(hook) => Check::ok(CHOSEN, format!("{}, once there is ib_uverbs", hook.name())),
        None => Check::missing(CHOSEN, "none works", "see the reasons above"),
    });
    checks
}

/// The programs, loaded for the first hook that needs them, or why they cannot be.
type Programs = Option<Result<Loaded, String>>;

fn load() -> Result<Loaded, String> {
    let filter = Filter { descendants: true, ..Filter::default() };
    Loaded::load(&Options { filter, ..Options::default() }).map_err(|e| e.to_string())
}

/// Attaches `hook` for a moment if it can be.
fn result(hook: Hook, root: &Path, loaded: bool, programs: &mut Programs) -> Result<(), Obstacle> {
    obstacles::check(hook, root)?;
    let stand_in = match hook {
        _ if loaded => hook,
        // Without the functions of ib_uverbs: what they take of the kernel, others take too.
        Hook::Fentry => Hook::SyscallFentry,
        Hook::Kprobe => return Ok(()), // one was tried
        Hook::SyscallFentry | Hook::RawSyscall => hook,
    };
    let tried = match programs.get_or_insert_with(load) {
        Ok(programs) => programs.try_hook(stand_in),
        Err(why) => Err(why.clone()),
    };
    tried.map_err(|reason| Obstacle { reason, fix: "another hook is used if one works".to_owned() })
}

fn check(hook: Hook, result: Result<(), Obstacle>, loaded: bool) -> Check {
    let found = if loaded { "" } else { "can be used: " };
    let check = Check::needed_by_some(hook.name(), format!("{found}{}", hook.description()), result);
    match (check.status, hook.limits()) {
        (Status::Ok, Some(limits)) => Check { found: format!("{}; {limits}", check.found), ..check },
        _ => check,
    }
}
