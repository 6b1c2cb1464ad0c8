//! What came of a mistake, and judging it.

use std::fmt;

use crate::verbs::{Completion, errno_name, status_name};

/// What a call or a request came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A call returned this errno value; 0 is success.
    Errno(i32),
    /// A request completed with this status.
    Status(u32),
    /// A request did not complete while the case waited.
    Pending,
    /// Any other fact, as a number.
    Number(u64),
}

impl Outcome {
    pub fn of(completion: Option<&Completion>) -> Self {
        completion.map_or(Self::Pending, |completion| Self::Status(completion.status))
    }

    /// Errno value of a call's result.
    pub fn errno<T>(result: &Result<T, crate::verbs::Refused>) -> Self {
        Self::Errno(result.as_ref().err().map_or(0, |refused| refused.errno))
    }

    /// Errno value of a verb's result; other errors are the caller's.
    pub fn verb<T>(result: Result<T, crate::verbs::Error>) -> Result<Self, crate::verbs::Error> {
        match result {
            Ok(_) => Ok(Self::Errno(0)),
            Err(crate::verbs::Error::Verb { errno, .. }) => Ok(Self::Errno(errno)),
            Err(other) => Err(other),
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Errno(errno) => f.write_str(&errno_name(*errno)),
            Self::Status(status) => f.write_str(&status_name(*status)),
            Self::Pending => f.write_str("no completion"),
            Self::Number(number) => write!(f, "{number}"),
        }
    }
}

/// One thing that a case looked at.
#[derive(Clone, Debug)]
pub struct Step {
    /// What was looked at.
    pub what: &'static str,
    pub got: Outcome,
    pub expected: Outcome,
    /// What some devices answer instead.
    pub tolerated: Vec<Outcome>,
}

/// How a step came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Right,
    Tolerated,
    Wrong,
}

impl Step {
    pub fn new(what: &'static str, got: Outcome, expected: Outcome) -> Self {
        Self { what, got, expected, tolerated: Vec::new() }
    }

    /// The status of a request.
    pub fn status(what: &'static str, completion: Option<&Completion>, expected: u32) -> Self {
        Self::new(what, Outcome::of(completion), Outcome::Status(expected))
    }

    /// Some devices answer this instead.
    #[must_use]
    pub fn or(mut self, tolerated: Outcome) -> Self {
        self.tolerated.push(tolerated);
        self
    }

    #[must_use]
    pub fn or_status(self, status: u32) -> Self {
        self.or(Outcome::Status(status))
    }

    #[must_use]
    pub fn or_errno(self, errno: i32) -> Self {
        self.or(Outcome::Errno(errno))
    }

    #[must_use]
    pub fn or_pending(self) -> Self {
        self.or(Outcome::Pending)
    }

    pub fn verdict(&self, strict: bool) -> Verdict {
        if self.got == self.expected {
            Verdict::Right
        } else if !strict && self.tolerated.contains(&self.got) {
            Verdict::Tolerated
        } else {
            Verdict::Wrong
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.got)?;
        if self.got != self.expected {
            write!(f, " (should be {})", self.expected)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_expected_is_right_and_strictness_tolerates_nothing() {
        let step = |got| Step::new("send", Outcome::Status(got), Outcome::Status(4)).or_status(2);
        assert_eq!(step(4).verdict(true), Verdict::Right);
        assert_eq!(step(2).verdict(false), Verdict::Tolerated);
        assert_eq!(step(2).verdict(true), Verdict::Wrong);
        assert_eq!(step(5).verdict(false), Verdict::Wrong);
        assert_eq!(step(4).to_string(), "send: LOC_PROT_ERR");
        assert_eq!(step(5).to_string(), "send: WR_FLUSH_ERR (should be LOC_PROT_ERR)");
    }

    #[test]
    fn a_missing_completion_is_not_success() {
        assert_eq!(Step::status("send", None, 0).verdict(false), Verdict::Wrong);
        assert_eq!(Outcome::of(Some(&Completion::default())), Outcome::Status(0));
    }
}
