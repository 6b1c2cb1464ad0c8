//! What the built library shows to the outside.

#![cfg(test)]

use std::path::PathBuf;
use std::process::Command;

use object::read::elf::ElfFile64;
use object::{Object, ObjectSymbol};

/// The folder of this build's profile: `target/<profile>`.
fn profile() -> PathBuf {
    std::env::current_exe().unwrap().ancestors().nth(2).unwrap().into()
}

/// The library of this build. `cargo test` alone does not make a cdylib that nothing links, so
/// it is made here.
fn image() -> Vec<u8> {
    let profile = profile();
    let name = match profile.file_name().unwrap().to_str().unwrap() {
        "debug" => "dev",
        other => other,
    };
    let status = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "-p", "tbv-provider", "--profile", name, "--target-dir"])
        .arg(profile.parent().unwrap())
        .status()
        .unwrap();
    assert!(status.success(), "building the provider: {status}");
    let path = profile.join("libusb4_rdma.so");
    std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

#[test]
fn nothing_is_exported() {
    let image = image();
    let elf: ElfFile64 = ElfFile64::parse(&*image).unwrap();
    let exported: Vec<_> =
        elf.dynamic_symbols().filter(|s| s.is_definition()).map(|s| s.name().unwrap().to_owned()).collect();
    assert!(exported.is_empty(), "{exported:?}");
}

/// As a tracer finds them: each at least once, since the compiler may make several of one, and with its arguments.
#[test]
fn its_probes_are_there() {
    let markers = tbv_core::usdt::markers(&image(), tbv_proto::PROBE_PROVIDER).unwrap();
    for (name, arguments) in tbv_proto::PROBES {
        assert!(markers.iter().any(|marker| marker.name == name), "no {name}: {markers:?}");
        let mut of_it = markers.iter().filter(|marker| marker.name == name);
        assert!(of_it.all(|marker| marker.arguments.len() == arguments), "{name}: {markers:?}");
    }
    assert!(markers.iter().all(|marker| tbv_proto::PROBES.iter().any(|(name, _)| *name == marker.name)));
}

#[test]
fn it_registers_under_the_private_abi_it_was_built_for() {
    let image = image();
    let elf: ElfFile64 = ElfFile64::parse(&*image).unwrap();
    let wanted: Vec<_> =
        elf.dynamic_symbols().filter(|s| s.is_undefined()).map(|s| s.name().unwrap().to_owned()).collect();
    let register = format!("verbs_register_driver_{}", env!("USB4_RDMA_PABI"));
    assert!(wanted.contains(&register), "{wanted:?}");
}

#[test]
fn it_lies_under_the_name_that_libibverbs_looks_for() {
    let profile = profile();
    let link = profile.join(format!("libusb4_rdma-rdmav{}.so", env!("USB4_RDMA_PABI")));
    assert_eq!(std::fs::read_link(&link).unwrap().to_str(), Some("libusb4_rdma.so"));
    let configuration = std::fs::read_to_string(profile.join("usb4_rdma.driver")).unwrap();
    assert_eq!(configuration, format!("driver {}\n", tbv_proto::DRIVER_NAME));
}
