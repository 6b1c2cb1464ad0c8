//! A recording for the tests: made up, and the same every time.

use std::{path::PathBuf, sync::OnceLock};

use tbv_top::{fixture, source::recorder::Recorder};

/// Twelve seconds of four processes.
pub(crate) fn recording() -> &'static str {
    static FILE: OnceLock<String> = OnceLock::new();
    FILE.get_or_init(|| {
        // Several test programs run at once.
        let name = format!("recording-{}.jsonl", std::process::id());
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        let mut recorder = Recorder::create(&path).unwrap();
        (1..=12).for_each(|number| recorder.add(&fixture::interval(number, 4)).unwrap());
        recorder.finish(None).unwrap();
        path.to_str().unwrap().to_owned()
    })
}
