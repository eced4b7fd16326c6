//! benches

fn main() {}
