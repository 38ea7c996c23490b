//! Any text as the configuration file: flags, or refused by name, never a panic.
#![no_main]
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| nestor::fuzz::configuration(text));
