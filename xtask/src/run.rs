//! Running other programs from the root of the workspace.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// An error as a sentence.
pub(crate) type Outcome = Result<(), String>;

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest
        .parent()
        .expect("xtask lies in the workspace")
        .to_owned()
}

/// Runs `program` with `arguments` and the given variables; its output is shown.
pub(crate) fn run(program: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Outcome {
    println!("$ {program} {}", arguments.join(" "));
    let status = Command::new(program)
        .args(arguments)
        .envs(variables.iter().copied())
        .current_dir(root())
        .status()
        .map_err(|e| format!("{program} could not be started: {e}"))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!(
            "`{program} {}` failed: {status}",
            arguments.join(" ")
        ))
    }
}

/// Whether `program` with `arguments` runs and says that all is well; nothing is shown.
pub(crate) fn works(program: &str, arguments: &[&str]) -> bool {
    Command::new(program)
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}
