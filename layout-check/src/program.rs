//! The generated C program.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::Error;

/// Values of C expressions as Rust believes them.
#[derive(Debug, Default)]
pub struct Check {
    headers: Vec<String>,
    arguments: Vec<OsString>,
    /// C expression, `printf` conversion with cast, and the value expected, printed.
    expected: Vec<(String, &'static str, String)>,
}

impl Check {
    /// A check against a header, written as after `#include`: `<a.h>` or `"a.h"`.
    pub fn new(header: &str) -> Self {
        Self { headers: vec![header.into()], ..Self::default() }
    }

    /// Adds a header, included after the earlier ones.
    #[must_use]
    pub fn include(mut self, header: &str) -> Self {
        self.headers.push(header.into());
        self
    }

    /// Adds a command line argument for the C compiler.
    #[must_use]
    pub fn argument(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Expects an integer constant expression to have this value.
    #[must_use]
    pub fn number(mut self, expression: &str, value: impl Into<i128>) -> Self {
        let value: i128 = value.into();
        self.expected.push((expression.into(), "%lld\\n\", (long long)", value.to_string()));
        self
    }

    /// Expects a string constant to have this value.
    #[must_use]
    pub fn text(mut self, expression: &str, value: &str) -> Self {
        self.expected.push((expression.into(), "%s\\n\", ", value.into()));
        self
    }

    /// Expects what [`layout!`](crate::layout) lists.
    #[must_use]
    pub fn all(self, values: impl IntoIterator<Item = (String, usize)>) -> Self {
        values.into_iter().fold(self, |check, (expression, value)| check.number(&expression, value as i128))
    }

    /// Compiles and runs the program in a scratch directory, which is created, and compares.
    pub fn run(&self, scratch: &Path) -> Result<(), Error> {
        let source = scratch.join("layout.c");
        let program = scratch.join("layout");
        fs::create_dir_all(scratch).map_err(|e| Error::Scratch(scratch.into(), e))?;
        fs::write(&source, self.source()).map_err(|e| Error::Scratch(source.clone(), e))?;

        let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
        let mut compile = Command::new(&compiler);
        compile.args(["-std=gnu11", "-Wall", "-Werror"]).args(&self.arguments);
        let compiled = compile.arg("-o").arg(&program).arg(&source).output();
        let compiled = compiled.map_err(|e| Error::Start(compiler, e))?;
        if !compiled.status.success() {
            return Err(Error::Compile(String::from_utf8_lossy(&compiled.stderr).into_owned()));
        }

        let printed = Command::new(&program).output();
        let printed = printed.map_err(|e| Error::Start(program.display().to_string(), e))?;
        let text = String::from_utf8_lossy(&printed.stdout).into_owned();
        self.compare(&text)
    }

    fn source(&self) -> String {
        let mut text = String::from("#include <stddef.h>\n#include <stdio.h>\n");
        for header in &self.headers {
            let _ = writeln!(text, "#include {header}");
        }
        text.push_str("int main(void)\n{\n");
        for (expression, conversion, _) in &self.expected {
            let _ = writeln!(text, "\tprintf(\"{conversion}({expression}));");
        }
        text.push_str("\treturn 0;\n}\n");
        text
    }

    fn compare(&self, printed: &str) -> Result<(), Error> {
        let lines: Vec<&str> = printed.lines().collect();
        if lines.len() != self.expected.len() {
            return Err(Error::Output(printed.into()));
        }
        let different: Vec<String> = self
            .expected
            .iter()
            .zip(lines)
            .filter(|((_, _, rust), c)| rust != c)
            .map(|((expression, _, rust), c)| format!("{expression}: {c} in C, {rust} in Rust"))
            .collect();
        if different.is_empty() { Ok(()) } else { Err(Error::Differ(different)) }
    }
}
