//! The steps of CI, each a command of its own.

use std::fmt::Write;
use std::time::Instant;

use crate::fuzz;
use crate::run::{Outcome, root, run, works};
use crate::tidy;

/// The one profile that CI compiles.
const PROFILE: &str = "ci";

/// The packages whose features are compiled alone, with their features.
const FEATURES: [(&str, &[&str]); 1] = [("stateline", &["memory"])];

/// One step.
type Step = fn() -> Outcome;

/// All steps in order; the first that fails ends it.
pub(crate) fn ci() -> Outcome {
    let steps: [(&str, Step); 8] = [
        ("fmt", fmt),
        ("tidy", tidy),
        ("clippy", clippy),
        ("test", test),
        ("fuzz", fuzz::ci),
        ("doc", doc),
        ("demo", demo),
        ("deny", deny),
    ];
    let mut summary = String::new();
    for (name, step) in steps {
        println!("\n== {name}");
        #[expect(
            clippy::disallowed_methods,
            reason = "how long a step takes is for people"
        )]
        let started = Instant::now();
        let outcome = step();
        let verdict = if outcome.is_ok() { "passed" } else { "FAILED" };
        let took = started.elapsed().as_secs_f64();
        let _ = writeln!(summary, "  {name:<8}{took:>7.1} s  {verdict}");
        println!("-- {name} {verdict} after {took:.1} s");
        if let Err(e) = outcome {
            println!("\n{summary}");
            return Err(format!("step `{name}` failed: {e}"));
        }
    }
    println!("\n{summary}all steps passed");
    Ok(())
}

pub(crate) fn fmt() -> Outcome {
    component("rustfmt", "fmt")?;
    run("cargo", &["fmt", "--all", "--check"], &[])
}

pub(crate) fn tidy() -> Outcome {
    let faults = tidy::check(&root())?;
    if faults.is_empty() {
        println!("tidy");
        return Ok(());
    }
    for fault in &faults {
        println!("{fault}");
    }
    Err(format!("{} faults", faults.len()))
}

pub(crate) fn clippy() -> Outcome {
    component("clippy", "clippy")?;
    let lint = |extra: &[&str]| {
        let mut arguments = vec!["clippy", "--profile", PROFILE];
        arguments.extend_from_slice(extra);
        arguments.extend_from_slice(&["--", "-D", "warnings"]);
        run("cargo", &arguments, &[])
    };
    lint(&["--workspace", "--all-targets"])?;
    lint(&["-p", "fuzz", "--features", "fuzzer", "--bins"])?;
    for (package, features) in FEATURES {
        lint(&["-p", package, "--no-default-features"])?;
        for feature in features {
            lint(&[
                "-p",
                package,
                "--no-default-features",
                "--features",
                feature,
            ])?;
        }
    }
    Ok(())
}

pub(crate) fn test() -> Outcome {
    if nextest() {
        run(
            "cargo",
            &["nextest", "run", "--workspace", "--cargo-profile", PROFILE],
            &[],
        )?;
    } else {
        println!("cargo-nextest could not be installed; running the tests without it");
        let arguments = [
            "test",
            "--workspace",
            "--lib",
            "--bins",
            "--tests",
            "--profile",
            PROFILE,
        ];
        run("cargo", &arguments, &[])?;
    }
    run(
        "cargo",
        &["test", "--workspace", "--doc", "--profile", PROFILE],
        &[],
    )
}

pub(crate) fn doc() -> Outcome {
    let arguments = ["doc", "--workspace", "--no-deps", "--profile", PROFILE];
    run("cargo", &arguments, &[("RUSTDOCFLAGS", "-D warnings")])
}

pub(crate) fn demo() -> Outcome {
    let dir = std::env::temp_dir().join(format!("stateline-demo-{}", std::process::id()));
    let dir_text = dir.to_string_lossy();
    let arguments = [
        "run",
        "--profile",
        PROFILE,
        "-p",
        "cli",
        "--",
        "demo",
        "--check",
        "--dir",
        &*dir_text,
    ];
    let outcome = run("cargo", &arguments, &[]);
    // What is left in a temporary directory does no harm.
    let _ = std::fs::remove_dir_all(&dir);
    outcome
}

pub(crate) fn soak(seeds: &[&str]) -> Outcome {
    let mut arguments = vec!["run", "--profile", PROFILE, "-p", "simulation", "--"];
    arguments.extend_from_slice(seeds);
    run("cargo", &arguments, &[])
}

pub(crate) fn deny() -> Outcome {
    if works("cargo", &["deny", "--version"]) {
        return run(
            "cargo",
            &["deny", "check", "licenses", "bans", "sources"],
            &[],
        );
    }
    println!("cargo-deny is not installed; licences and sources are not checked");
    Ok(())
}

pub(crate) fn doctor() {
    let needs: [(&str, &str, &[&str], &str); 6] = [
        (
            "cargo fmt",
            "cargo",
            &["fmt", "--version"],
            "rustup component add rustfmt",
        ),
        (
            "cargo clippy",
            "cargo",
            &["clippy", "--version"],
            "rustup component add clippy",
        ),
        (
            "a C compiler",
            "cc",
            &["--version"],
            "install gcc or clang; zstd and BLAKE3 need it",
        ),
        (
            "a C++ compiler",
            "c++",
            &["--version"],
            "install g++ or clang; only cargo xtask fuzz wants it",
        ),
        (
            "cargo-nextest",
            "cargo",
            &["nextest", "--version"],
            "cargo xtask test installs it",
        ),
        (
            "cargo-deny",
            "cargo",
            &["deny", "--version"],
            "cargo install cargo-deny; only CI's deny step wants it",
        ),
    ];
    for (what, program, arguments, hint) in needs {
        let verdict = if works(program, arguments) {
            "found".to_owned()
        } else {
            format!("missing: {hint}")
        };
        println!("{what:<16}{verdict}");
    }
}

/// Adds a component of the toolchain if it is missing.
fn component(name: &str, command: &str) -> Outcome {
    if works("cargo", &[command, "--version"]) {
        return Ok(());
    }
    run("rustup", &["component", "add", name], &[])
}

/// Whether cargo-nextest is there, or could be installed.
fn nextest() -> bool {
    works("cargo", &["nextest", "--version"])
        || run("cargo", &["install", "cargo-nextest", "--locked"], &[]).is_ok()
}
