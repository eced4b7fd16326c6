//! The tools on what a demo leaves behind, as a user runs them.

use std::path::Path;
use std::process::{Command, Output};

fn stateline(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_stateline"))
        .args(arguments)
        .output()
        .expect("it runs")
}

/// What a command says that ends with `status`.
#[track_caller]
fn says(arguments: &[&str], status: i32) -> String {
    let output = stateline(arguments);
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{arguments:?}: {text}");
    text.into_owned()
}

fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).expect("it is there");
    let mut files: Vec<_> = entries.map(|entry| entry.expect("read").path()).collect();
    files.sort();
    files
}

#[test]
fn a_demo_job_is_verified_collected_copied_and_brought_back() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| directory.path().join(name).display().to_string();
    let (job, copy) = (path("job"), path("copy"));
    says(&["ls", &job], 2);
    says(&["demo", "--check", "--dir", &job], 0);
    let before = files(&directory.path().join("job/segments"));

    let verified = says(&["verify", &job], 0);
    assert!(verified.contains("faults: 0"), "{verified}");
    let plan = says(&["gc", &job], 0);
    assert!(plan.contains("would delete 18 manifests"), "{plan}");
    assert_eq!(files(&directory.path().join("job/segments")), before);
    says(&["gc", &job, "--apply"], 0);
    assert!(files(&directory.path().join("job/segments")).len() < before.len());
    let listed = says(&["ls", &job], 0);
    assert!(listed.contains("2 snapshots"), "{listed}");

    says(&["copy", &job, &copy, "--snapshot", "2-19"], 0);
    let again = says(&["copy", &job, &copy, "--snapshot", "2-19"], 0);
    assert!(again.contains("2-19: 0 objects copied"), "{again}");
    says(&["verify", &copy], 0);
    says(&["verify", &copy, "--snapshot", "nonsense"], 2);

    // The newest snapshot is damaged where the one before is not: in its manifest.
    let manifest = files(&directory.path().join("job/snapshots")).pop();
    let manifest = manifest.expect("there are two");
    let mut bytes = std::fs::read(&manifest).expect("read");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&manifest, bytes).expect("written");
    let hurt = says(&["verify", &job], 1);
    assert!(hurt.contains("newest whole snapshot: 2-19"), "{hurt}");
    let back = says(&["fallback", &job, "--apply"], 0);
    assert!(back.contains("given up: 3-20"), "{back}");
    assert!(
        back.contains("the job goes on from 2-19, as 4-21"),
        "{back}"
    );
    // What was given up stays until it is collected.
    says(&["verify", &job], 1);
    says(&["gc", &job, "--apply"], 0);
    says(&["verify", &job], 0);
}
