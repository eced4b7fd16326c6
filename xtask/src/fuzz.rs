//! Fuzzing: libFuzzer over the targets of the package `fuzz`, on the stable toolchain.
//!
//! Coverage comes from flags of the compiler that are stable, though nobody documents them
//! together: a pass of LLVM and its options. Only the packages of the workspace get them, through
//! `RUSTC_WORKSPACE_WRAPPER`, which is this program again: what is counted is our code, and
//! dependencies are compiled once for tests and fuzzing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use crate::run::{Outcome, root, run, works};

/// Set for the compilers below [`build`]; see [`wrap`].
const WRAPS: &str = "STATELINE_FUZZ_WRAPS";
const TARGET: &str = "STATELINE_FUZZ_TARGET";

const COVERAGE: [&str; 6] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "--cfg=fuzzing",
];

/// The longest input, in bytes: inputs are small, so that there are many.
const INPUT_BYTES_MAX: u32 = 8 << 10;
/// Seconds for one input, and MiB of memory for the process, beyond which it is a finding.
const INPUT_S_MAX: u32 = 10;
const MEMORY_MB_MAX: u32 = 1 << 10;
const SECONDS_DEFAULT: u32 = 10;
const SECONDS_CI: u32 = 5;

/// What one run of a target was like.
#[derive(Debug, Default, PartialEq, Eq)]
struct Report {
    executions: u64,
    per_second: u64,
    edges: u64,
    inputs_before: usize,
    inputs_after: usize,
}

/// Compiles for fuzzing if that is what this process is for; the arguments are those of the
/// compiler.
pub(crate) fn wrap() -> Option<ExitCode> {
    std::env::var_os(WRAPS)?;
    let mut arguments = std::env::args_os().skip(1);
    let status = Command::new(arguments.next()?)
        .args(arguments)
        .args(COVERAGE)
        .status();
    let code = status.ok().and_then(|status| status.code());
    let code = code.and_then(|code| u8::try_from(code).ok());
    Some(code.map_or(ExitCode::FAILURE, ExitCode::from))
}

/// The step of CI.
pub(crate) fn ci() -> Outcome {
    fuzz("all", SECONDS_CI)
}

/// `cargo xtask fuzz [target|all] [--seconds n]`.
pub(crate) fn command(arguments: &[&str]) -> Outcome {
    let (target, rest) = match arguments {
        [target, rest @ ..] if !target.starts_with('-') => (*target, rest),
        rest => ("all", rest),
    };
    let seconds = match rest {
        [] => SECONDS_DEFAULT,
        ["--seconds", count] => count
            .parse()
            .map_err(|_| format!("`{count}` is no number of seconds"))?,
        _ => return Err(format!("unknown arguments: {}", rest.join(" "))),
    };
    fuzz(target, seconds)
}

fn fuzz(target: &str, seconds: u32) -> Outcome {
    let known = targets()?;
    let chosen: Vec<&String> = known
        .iter()
        .filter(|name| target == "all" || *name == target)
        .collect();
    if chosen.is_empty() {
        return Err(format!(
            "no target `{target}`; there are {}",
            known.join(", ")
        ));
    }
    check_compiler()?;
    let fuzzer = build()?;
    let mut lines = Vec::new();
    let mut findings = Vec::new();
    for name in chosen {
        println!("\n-- {name}, {seconds} s");
        match run_target(&fuzzer, name, seconds)? {
            Ok(report) => lines.push(line(name, &report)),
            Err(finding) => {
                lines.push(format!("{name:<18}FINDING"));
                findings.push(finding);
            }
        }
    }
    println!(
        "\n{:<18}{:>12}{:>8}{:>10}{:>20}\n{}",
        "target",
        "executions",
        "edges",
        "exec/s",
        "inputs",
        lines.join("\n")
    );
    if findings.is_empty() {
        return Ok(());
    }
    Err(format!(
        "{} findings\n{}",
        findings.len(),
        findings.join("\n")
    ))
}

fn line(name: &str, report: &Report) -> String {
    format!(
        "{name:<18}{:>12}{:>8}{:>10}{:>20}",
        report.executions,
        report.edges,
        report.per_second,
        format!("{} -> {}", report.inputs_before, report.inputs_after)
    )
}

/// The targets: each has a folder in the corpus, which the package's tests hold.
fn targets() -> Result<Vec<String>, String> {
    let corpus = corpus();
    let listed = fs::read_dir(&corpus).map_err(|e| format!("{}: {e}", corpus.display()))?;
    let mut names: Vec<String> = listed
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    names.sort();
    Ok(names)
}

fn corpus() -> PathBuf {
    root().join("fuzz").join("corpus")
}

fn check_compiler() -> Outcome {
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
    if works(&compiler, &["--version"]) {
        return Ok(());
    }
    Err(format!(
        "`{compiler}` does not run: fuzzing needs a C++ compiler for libFuzzer; install g++ or \
         clang, or name one in CXX"
    ))
}

/// Where what is built and found lies.
fn target_folder() -> PathBuf {
    let folder =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    root().join(folder)
}

/// Builds the fuzzer with coverage.
fn build() -> Result<PathBuf, String> {
    let wrapper = std::env::current_exe().map_err(|e| format!("this program has no path: {e}"))?;
    let arguments = [
        "build",
        "--profile",
        "ci",
        "-p",
        "fuzz",
        "--features",
        "link",
        "--bin",
        "fuzzer",
    ];
    let variables = [
        ("RUSTC_WORKSPACE_WRAPPER", &*wrapper.to_string_lossy()),
        (WRAPS, "1"),
    ];
    run("cargo", &arguments, &variables)?;
    let fuzzer = target_folder().join("ci").join("fuzzer");
    Ok(fuzzer.with_extension(std::env::consts::EXE_EXTENSION))
}

/// Runs one target, from the corpus and from what earlier runs have added to it outside of the
/// repository; `Ok(Err(..))` is a finding.
fn run_target(fuzzer: &Path, name: &str, seconds: u32) -> Result<Result<Report, String>, String> {
    let grown = target_folder().join("fuzz").join("corpus").join(name);
    let artifacts = target_folder().join("fuzz").join("findings").join(name);
    for folder in [&grown, &artifacts] {
        fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    }
    let seeds = corpus().join(name);
    let inputs_before = count(&grown) + count(&seeds);
    let output = Command::new(fuzzer)
        .args([&grown, &seeds])
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-max_len={INPUT_BYTES_MAX}"))
        .arg(format!("-timeout={INPUT_S_MAX}"))
        .arg(format!("-rss_limit_mb={MEMORY_MB_MAX}"))
        .arg(format!("-artifact_prefix={}/", artifacts.display()))
        .arg("-print_final_stats=1")
        .env(TARGET, name)
        .current_dir(root())
        .stdin(Stdio::null())
        .output()
        .map_err(|e| format!("{} could not be started: {e}", fuzzer.display()))?;
    let log = String::from_utf8_lossy(&output.stderr);
    if output.status.success() {
        let report = Report {
            inputs_before,
            inputs_after: count(&grown) + count(&seeds),
            ..report(&log)
        };
        println!("{}", line(name, &report).trim());
        return Ok(Ok(report));
    }
    println!("{}", tail(&log));
    let file = artifact(&log).unwrap_or_else(|| seeds.display().to_string() + "/*");
    Ok(Err(format!(
        "{name}: replay it with\n  cargo run --profile ci -p fuzz -- replay {name} {file}"
    )))
}

fn count(folder: &Path) -> usize {
    fs::read_dir(folder).map_or(0, Iterator::count)
}

/// The last lines of a log, without the bytes of the input.
fn tail(log: &str) -> String {
    const LINES: usize = 40;
    let told: Vec<&str> = log
        .lines()
        .filter(|line| !line.starts_with('#') && !line.starts_with("0x"))
        .collect();
    told[told.len().saturating_sub(LINES)..].join("\n")
}

/// The file of a finding that libFuzzer says it has written.
fn artifact(log: &str) -> Option<String> {
    let (_, rest) = log.split_once("Test unit written to ")?;
    Some(rest.lines().next()?.trim().to_owned())
}

/// The figures of a log of libFuzzer.
fn report(log: &str) -> Report {
    let stat = |name: &str| {
        let line = log.lines().find(|line| line.starts_with(name));
        line.and_then(|line| line.rsplit(' ').next()?.parse().ok())
            .unwrap_or(0)
    };
    let edges = log
        .lines()
        .filter_map(|line| line.split_once(" cov: ")?.1.split(' ').next()?.parse().ok())
        .next_back();
    Report {
        executions: stat("stat::number_of_executed_units:"),
        per_second: stat("stat::average_exec_per_sec:"),
        edges: edges.unwrap_or(0),
        ..Report::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "\
INFO: Seed: 4216300526
#7\tINITED cov: 1532 ft: 3296 corp: 6/7765b exec/s: 0 rss: 31Mb
#23\tNEW    cov: 1540 ft: 3300 corp: 7/7768b exec/s: 0 rss: 31Mb
thread '<unnamed>' panicked at fuzz/src/targets/mod.rs:148:5:
artifact_prefix='found/'; Test unit written to found/crash-73b4
Base64: AAAA
stat::number_of_executed_units: 520902
stat::average_exec_per_sec:     40069
";

    #[test]
    fn figures_are_read_from_a_log() {
        let report = report(LOG);
        assert_eq!((report.executions, report.per_second), (520_902, 40_069));
        assert_eq!(report.edges, 1_540);
    }

    #[test]
    fn finding_is_read_from_a_log() {
        assert_eq!(artifact(LOG).as_deref(), Some("found/crash-73b4"));
        assert_eq!(artifact("INFO: Seed: 1"), None);
        assert!(tail(LOG).contains("panicked") && !tail(LOG).contains("INITED"));
    }
}
