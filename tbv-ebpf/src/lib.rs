//! Names the programs to cargo as a dependency; the programs themselves are in `main.rs`.
#![no_std]
