#![allow(warnings, clippy::all)]
fn main() { let a: Vec<String> = std::env::args().collect(); sifaka_local::trial::run(&a[1], &a[2], a[3].parse().unwrap(), a[4].parse().unwrap(), a[5].parse().unwrap()); }
