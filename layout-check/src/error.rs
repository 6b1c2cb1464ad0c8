//! What can be wrong.

use std::fmt;
use std::path::PathBuf;

/// Why a check didn't pass.
#[derive(Debug)]
pub enum Error {
    /// The scratch directory can't be written.
    Scratch(PathBuf, std::io::Error),
    /// A program can't be started.
    Start(String, std::io::Error),
    /// The C compiler refused the program; its messages.
    Compile(String),
    /// The compiled program failed or printed something else than lines of `expression<TAB>value`.
    Output(String),
    /// Values that differ, one line each.
    Differ(Vec<String>),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scratch(path, e) => write!(f, "cannot write {}: {e}", path.display()),
            Self::Start(program, e) => {
                write!(f, "cannot start {program}: {e}; install a C compiler (Debian: gcc) or set CC")
            }
            Self::Compile(messages) => write!(f, "the C side doesn't compile:\n{messages}"),
            Self::Output(text) => write!(f, "the C side printed something unexpected:\n{text}"),
            Self::Differ(lines) => write!(f, "C and Rust disagree:\n{}", lines.join("\n")),
        }
    }
}

impl std::error::Error for Error {}
