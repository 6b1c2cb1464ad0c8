//! Reads this machine's apt sources, to find the mirror it uses.

use std::{fs, path::Path};

use anyhow::{Context, Result};

/// One archive, suite and way to trust it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Source {
    pub(crate) uri: String,
    pub(crate) suite: String,
    /// `signed-by`, if the entry names one.
    pub(crate) keyring: Option<String>,
}

impl Source {
    /// The entry in apt's one-line format.
    pub(crate) fn line(&self) -> String {
        let options = self.keyring.as_ref().map(|path| format!("[signed-by={path}] ")).unwrap_or_default();
        format!("deb {options}{} {} main", self.uri, self.suite)
    }

    /// The same archive, another suite.
    pub(crate) fn with_suite(&self, suite: &str) -> Self {
        Self { suite: suite.into(), ..self.clone() }
    }
}

/// Every binary source with component main that this machine has configured.
pub(crate) fn of_machine() -> Result<Vec<Source>> {
    let dir = Path::new("/etc/apt");
    let mut files = vec![dir.join("sources.list")];
    if let Ok(entries) = fs::read_dir(dir.join("sources.list.d")) {
        files.extend(entries.filter_map(|entry| Some(entry.ok()?.path())));
    }
    files.sort();
    let mut found = Vec::new();
    for file in files.iter().filter(|file| file.is_file()) {
        let read = || fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()));
        match file.extension().and_then(|extension| extension.to_str()) {
            Some("sources") => found.extend(parse_deb822(&read()?)),
            Some("list") => found.extend(parse_one_line(&read()?)),
            _ => {}
        }
    }
    Ok(found)
}

/// The paragraph format of `*.sources`.
fn parse_deb822(text: &str) -> Vec<Source> {
    let text: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    text.split(|line| line.trim().is_empty()).flat_map(parse_paragraph).collect()
}

fn parse_paragraph(lines: &[&str]) -> Vec<Source> {
    let mut fields: Vec<(String, Vec<&str>)> = Vec::new();
    for line in lines {
        if line.starts_with([' ', '\t']) {
            if let Some((_, words)) = fields.last_mut() {
                words.extend(line.split_whitespace());
            }
        } else if let Some((name, value)) = line.split_once(':') {
            fields.push((name.to_ascii_lowercase(), value.split_whitespace().collect()));
        }
    }
    let get = |name: &str| {
        fields.iter().find(|(field, _)| field == name).map(|(_, words)| words.as_slice()).unwrap_or_default()
    };
    if !get("types").contains(&"deb") || !get("components").contains(&"main") || get("enabled") == ["no"] {
        return Vec::new();
    }
    // An inline key spans lines and starts with a dash; only a path can be passed on.
    let keyring = get("signed-by").first().filter(|word| word.starts_with('/')).map(|word| word.to_string());
    let suites = get("suites");
    let entry = |uri: &&str, suite: &&str| Source {
        uri: uri.to_string(),
        suite: suite.to_string(),
        keyring: keyring.clone(),
    };
    get("uris").iter().flat_map(|uri| suites.iter().map(move |suite| entry(uri, suite))).collect()
}

/// The format of `sources.list`: `deb [options] uri suite components…`.
fn parse_one_line(text: &str) -> Vec<Source> {
    text.lines().filter_map(parse_line).collect()
}

fn parse_line(line: &str) -> Option<Source> {
    let line = line.split('#').next()?.trim();
    let mut rest = line.strip_prefix("deb")?.strip_prefix([' ', '\t'])?.trim_start();
    let mut keyring = None;
    if let Some(bracketed) = rest.strip_prefix('[') {
        let (options, after) = bracketed.split_once(']')?;
        let signed_by = options.split_whitespace().find_map(|option| option.strip_prefix("signed-by="));
        keyring = signed_by.map(str::to_owned);
        rest = after;
    }
    let mut words = rest.split_whitespace();
    let (uri, suite) = (words.next()?, words.next()?);
    words.any(|component| component == "main").then(|| Source {
        uri: uri.into(),
        suite: suite.into(),
        keyring,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(uri: &str, suite: &str, keyring: Option<&str>) -> Source {
        Source { uri: uri.into(), suite: suite.into(), keyring: keyring.map(str::to_owned) }
    }

    #[test]
    fn deb822_paragraphs() {
        let text = "Types: deb deb-src\n# a comment\nURIs: http://a.example/debian\nSuites: one one-updates\n\
                    Components: main\nSigned-By: /k.gpg\n\nTypes: deb-src\nURIs: http://b.example\nSuites: two\n\
                    Components: main\n\nEnabled: no\nTypes: deb\nURIs: http://c.example\nSuites: x\nComponents: main\n\n\
                    types: deb\nuris:\n http://d.example\nsuites: x\ncomponents: contrib\n main\nsigned-by:\n -----BEGIN\n";
        let expected = [
            source("http://a.example/debian", "one", Some("/k.gpg")),
            source("http://a.example/debian", "one-updates", Some("/k.gpg")),
            source("http://d.example", "x", None),
        ];
        assert_eq!(parse_deb822(text), expected);
    }

    #[test]
    fn one_line_entries() {
        let text = "deb http://a.example/debian one main contrib # c\n# deb http://no.example x main\n\
                    deb-src http://b.example one main\ndeb\t[arch=amd64 signed-by=/k.gpg] http://c.example two main\n\
                    deb http://d.example one universe\ndeb http://e.example\n";
        let expected = [
            source("http://a.example/debian", "one", None),
            source("http://c.example", "two", Some("/k.gpg")),
        ];
        assert_eq!(parse_one_line(text), expected);
    }

    #[test]
    fn written_line_is_read_back() {
        let all =
            [source("http://a.example/d", "s", Some("/k.gpg")), source("http://a.example/d", "s", None)];
        let text: Vec<String> = all.iter().map(Source::line).collect();
        assert_eq!(parse_one_line(&text.join("\n")), all);
    }
}
