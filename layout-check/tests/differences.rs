//! A check that couldn't fail would prove nothing.

#![cfg(test)]

use std::path::PathBuf;

use layout_check::{Check, Error, layout};

fn scratch(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name)
}

#[repr(C)]
struct Swapped {
    rem: i32,
    quot: i32,
}

#[test]
fn every_difference_is_listed() {
    let check = Check::new("<stdlib.h>")
        .all(layout!(Swapped as "div_t" { quot, rem }))
        .number("EXIT_FAILURE", 2)
        .number("EXIT_SUCCESS", 0);
    let Err(Error::Differ(lines)) = check.run(&scratch("differ")) else { panic!("nothing found") };
    assert_eq!(
        lines,
        [
            "offsetof(div_t, quot): 0 in C, 4 in Rust",
            "offsetof(div_t, rem): 4 in C, 0 in Rust",
            "EXIT_FAILURE: 1 in C, 2 in Rust",
        ]
    );
}

#[test]
fn a_member_under_another_name_is_found() {
    let check = Check::new("<stdlib.h>").all(layout!(Swapped as "div_t" { rem = "quot", quot = "rem" }));
    check.run(&scratch("renamed")).unwrap();
}

#[test]
fn text_is_compared() {
    let check = || Check::new("<limits.h>").argument("-DNAME=\"tbv\"");
    check().text("NAME", "tbv").run(&scratch("text")).unwrap();
    assert!(matches!(check().text("NAME", "tbw").run(&scratch("text")), Err(Error::Differ(_))));
}

#[test]
fn an_unknown_member_is_the_compilers_error() {
    let check = Check::new("<stdlib.h>").number("offsetof(div_t, remainder)", 0);
    let Err(Error::Compile(messages)) = check.run(&scratch("unknown")) else { panic!("compiled") };
    assert!(messages.contains("remainder"), "{messages}");
}
