//! What CI runs, and what a person runs: `cargo xtask help`.

mod fuzz;
mod run;
mod steps;
mod tidy;

use std::process::ExitCode;

const HELP: &str = "\
cargo xtask <command>

  ci        everything that CI runs, in this order
  fmt       formatting, without changing a file
  tidy      what a compiler cannot see: file sizes, dependency direction, import circles, ..
  clippy    lints as errors, over all targets, and each feature alone
  test      all tests, then the examples in the documentation
  doc       the documentation, without a warning
  fuzz      every decoder against changed bytes, with coverage: fuzz [target|all] [--seconds n]
  demo      the demo over all flights, in check mode
  deny      licences and sources of what is used, if cargo-deny is there
  soak      simulated jobs by seed, not a part of CI: --minutes 60, or --from 0 --seeds 1000;
            one seed with all that happens: --from 7 --seeds 1 --trace
  doctor    what is missing on this machine
";

fn main() -> ExitCode {
    if let Some(code) = fuzz::wrap() {
        return code;
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let names: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match names[..] {
        ["ci"] => steps::ci(),
        ["fmt"] => steps::fmt(),
        ["tidy"] => steps::tidy(),
        ["clippy"] => steps::clippy(),
        ["test"] => steps::test(),
        ["doc"] => steps::doc(),
        ["fuzz", ref arguments @ ..] => fuzz::command(arguments),
        ["demo"] => steps::demo(),
        ["deny"] => steps::deny(),
        ["soak", ref arguments @ ..] => steps::soak(arguments),
        ["doctor"] => {
            steps::doctor();
            Ok(())
        }
        [] | ["help" | "--help" | "-h"] => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        _ => Err(format!("unknown command: {}\n\n{HELP}", names.join(" "))),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("\nxtask: {message}");
            ExitCode::FAILURE
        }
    }
}
