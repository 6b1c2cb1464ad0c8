//! The committed id table against the installed uapi headers: every object, method, write command
//! and driver they define has its name.
//!
//! `TBV_BLESS=1` adds what is missing to `src/uapi/table.rs`. `TBV_UAPI_DIR` reads other headers than
//! `/usr/include/rdma` (Debian: linux-libc-dev).

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failing test shows where")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Method enums whose name doesn't say their object.
const OBJECT_OF_ENUM: &[(&str, &str)] = &[("bnxt_re_toggle_mem_methods", "GET_TOGGLE_MEM")];

/// The constants of the table file.
const TABLES: [&str; 4] = ["DRIVERS", "OBJECTS", "METHODS", "COMMANDS"];

/// Table and ids → name.
type Rows = BTreeMap<(usize, Vec<u64>), String>;

struct Enumerator {
    group: String,
    name: String,
    value: Option<u64>,
}

#[test]
fn every_id_of_the_installed_headers_is_named() {
    let directory = std::env::var_os("TBV_UAPI_DIR").map_or("/usr/include/rdma".into(), PathBuf::from);
    let defined = header_rows(&read_headers(&directory));
    let count = |table| defined.keys().filter(|key| key.0 == table).count();
    assert!(count(0) > 15 && count(1) > 15 && count(2) > 40 && count(3) > 45, "headers misread: {defined:?}");

    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/uapi/table.rs");
    let text = std::fs::read_to_string(&path).unwrap();
    let committed = table_rows(&text);
    let missing: Vec<_> = defined.iter().filter(|(key, name)| committed.get(*key) != Some(*name)).collect();
    if missing.is_empty() {
        return;
    }
    if std::env::var_os("TBV_BLESS").is_some() {
        let mut all = committed.clone();
        all.extend(defined.clone());
        std::fs::write(&path, render(&text, &all)).unwrap();
    }
    panic!("not in src/uapi/table.rs, or with another name (TBV_BLESS=1 adds them): {missing:#?}");
}

#[test]
fn the_table_file_is_what_the_generator_writes() {
    let text = include_str!("../src/uapi/table.rs");
    assert_eq!(render(text, &table_rows(text)), text);
}

fn read_headers(directory: &Path) -> Vec<Enumerator> {
    let entries = std::fs::read_dir(directory)
        .unwrap_or_else(|error| panic!("{}: {error}: install the uapi headers", directory.display()));
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "h"));
    paths.sort();
    let texts: Vec<_> =
        paths.iter().map(|path| without_comments(&std::fs::read_to_string(path).unwrap())).collect();

    let mut symbols = BTreeMap::new();
    for line in texts.iter().flat_map(|text| text.lines()) {
        let mut words = line.split_whitespace();
        if let (Some("#define"), Some(name), Some(value), None) =
            (words.next(), words.next(), words.next(), words.next())
        {
            symbols.extend(evaluate(value, &BTreeMap::new()).map(|value| (name.to_owned(), value)));
        }
    }
    texts.iter().flat_map(|text| enumerators(text, &mut symbols)).collect()
}

fn without_comments(text: &str) -> String {
    let mut parts = text.split("/*");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |kept, part| kept + part.split_once("*/").map_or("", |(_, rest)| rest))
}

fn enumerators(text: &str, symbols: &mut BTreeMap<String, u64>) -> Vec<Enumerator> {
    let mut found = Vec::new();
    for part in text.split("enum ").skip(1) {
        let Some((group, body)) = part.split_once('{') else { continue };
        if group.contains([';', ')', ',']) {
            continue; // a use of an enum type, not its definition
        }
        let body = body.split_once('}').map_or(body, |(body, _)| body);
        let mut next = Some(0);
        for item in body.split(',').map(str::trim).filter(|item| !item.is_empty()) {
            let (name, expression) = match item.split_once('=') {
                Some((name, expression)) => (name.trim(), Some(expression)),
                None => (item, None),
            };
            let value = expression.map_or(next, |expression| evaluate(expression, symbols));
            next = value.map(|value| value + 1);
            symbols.extend(value.map(|value| (name.to_owned(), value)));
            found.push(Enumerator { group: group.trim().to_owned(), name: name.to_owned(), value });
        }
    }
    found
}

/// Numbers, names and shifts: all that the ids use.
fn evaluate(expression: &str, symbols: &BTreeMap<String, u64>) -> Option<u64> {
    let expression = expression.trim().trim_start_matches('(').trim_end_matches(')').trim();
    if let Some((left, right)) = expression.split_once("<<") {
        return evaluate(left, symbols)?.checked_shl(evaluate(right, symbols)? as u32);
    }
    let digits = expression.trim_end_matches(['U', 'L']);
    let number = match digits.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => digits.parse(),
    };
    number.ok().or_else(|| symbols.get(expression).copied())
}

fn header_rows(enumerators: &[Enumerator]) -> Rows {
    let mut rows = Rows::new();
    let value =
        |item: &Enumerator| item.value.unwrap_or_else(|| panic!("{}: value not understood", item.name));
    for item in enumerators.iter().filter(|item| item.group == "rdma_driver_id") {
        let name = item.name.trim_start_matches("RDMA_DRIVER_");
        if value(item) != 0 {
            rows.insert((0, vec![value(item)]), name.to_owned()); // an alias replaces the older name
        }
    }
    let driver = |prefix: &str| match prefix.trim_end_matches("_IB") {
        "UVERBS" => (0, String::new()),
        name => {
            let found = enumerators.iter().find(|item| item.name == format!("RDMA_DRIVER_{name}"));
            (value(found.unwrap_or_else(|| panic!("no driver id for {prefix}"))), format!("{name}_"))
        }
    };
    let ids = || enumerators.iter().filter(|item| !item.name.contains("_ATTR_"));
    for item in ids().filter(|item| item.group.ends_with("_objects")) {
        let (prefix, name) = item.name.split_once("_OBJECT_").unwrap();
        rows.insert((1, vec![driver(prefix).0, value(item)]), name.to_owned());
    }
    for item in ids() {
        let Some((prefix, name)) = item.name.split_once("_METHOD_") else { continue };
        let (driver, tag) = driver(prefix);
        let object = object_of(&item.group, driver, &tag, &rows);
        let name = if name == "REG_DMABUF_MR" { "MR_REG_DMABUF" } else { name };
        rows.insert((2, vec![driver, object, value(item)]), format!("{tag}{name}"));
    }
    for item in enumerators.iter().filter(|item| item.group == "ib_uverbs_write_cmds") {
        let name = item.name.trim_start_matches("IB_USER_VERBS_CMD_");
        rows.insert((3, vec![value(item)]), name.to_owned());
    }
    for item in enumerators {
        if let Some(name) = item.name.strip_prefix("IB_USER_VERBS_EX_CMD_") {
            rows.insert((3, vec![0x100 | value(item)]), format!("EX_{name}"));
        }
    }
    rows
}

/// The object id of an enum of methods, by the enum's name: `mlx5_ib_var_obj_methods` → VAR.
fn object_of(group: &str, driver: u64, tag: &str, rows: &Rows) -> u64 {
    let exception = OBJECT_OF_ENUM.iter().find(|row| row.0 == group).map(|row| row.1.to_owned());
    let name = exception.unwrap_or_else(|| {
        let name = group.to_uppercase().replace("UVERBS_METHODS_", "").replace("UVERBS_METHOD_", "");
        let name = name.trim_start_matches(tag).trim_start_matches("IB_").trim_start_matches("ACTIONS_");
        name.trim_end_matches("_OPS").trim_end_matches("_METHODS").to_owned()
    });
    let find = |driver: u64, name: &str| {
        rows.iter()
            .find(|(key, row)| key.0 == 1 && key.1[0] == driver && *row == name)
            .map(|(key, _)| key.1[1])
    };
    let shorter = name.trim_end_matches("_OBJ");
    find(driver, &name)
        .or_else(|| find(driver, shorter))
        .or_else(|| find(0, &name))
        .unwrap_or_else(|| panic!("enum {group}: methods of which object? Add it to OBJECT_OF_ENUM"))
}

fn table_rows(text: &str) -> Rows {
    let mut rows = Rows::new();
    let mut table = 0;
    for line in text.lines() {
        if let Some(found) = TABLES.iter().position(|name| line.contains(&format!("const {name}:"))) {
            table = found;
        } else if let Some(row) = line.strip_prefix("    (") {
            let mut columns: Vec<_> = row.trim_end_matches("),").split(", ").collect();
            let name = columns.pop().unwrap().trim_matches('"').to_owned();
            let ids = columns.iter().map(|id| evaluate(id, &BTreeMap::new()).unwrap()).collect();
            rows.insert((table, ids), name);
        }
    }
    rows
}

/// The table file with `rows` in place of the ones it has.
fn render(text: &str, rows: &Rows) -> String {
    let mut output = String::new();
    for line in text.lines().filter(|line| !line.starts_with("    (")) {
        output += &format!("{line}\n");
        let Some(table) = TABLES.iter().position(|name| line.contains(&format!("const {name}:"))) else {
            continue;
        };
        for ((_, ids), name) in rows.iter().filter(|row| row.0.0 == table) {
            let ids: String = ids.iter().map(|id| format!("{id:#x}, ")).collect();
            output += &format!("    ({ids}\"{name}\"),\n");
        }
    }
    output
}
