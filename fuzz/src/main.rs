//! `fuzz`: replays files of the corpus, and makes the seeds.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use fuzz::{Target, seeds};

const HELP: &str = "\
fuzz list                     the targets
fuzz replay TARGET FILE..     holds what a target is about against files; panics at a finding
fuzz seeds                    writes the seeds of the corpus anew
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let names: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match names[..] {
        ["list"] => {
            for target in Target::ALL {
                println!("{}", target.name());
            }
            Ok(())
        }
        ["replay", target, ref files @ ..] => replay(target, files),
        ["seeds"] => write_seeds(),
        _ => Err(HELP.to_owned()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
    }
}

fn replay(target: &str, files: &[&str]) -> Result<(), String> {
    let target: Target = target.parse()?;
    for file in files {
        let bytes = std::fs::read(file).map_err(|e| format!("{file}: {e}"))?;
        println!("{file}: {:?}", target.run(&bytes));
    }
    Ok(())
}

fn write_seeds() -> Result<(), String> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    for seed in seeds() {
        let folder: PathBuf = corpus.join(seed.target.name());
        let file = folder.join(seed.name);
        std::fs::create_dir_all(&folder)
            .and_then(|()| std::fs::write(&file, &seed.bytes))
            .map_err(|e| format!("{}: {e}", file.display()))?;
    }
    println!("{} seeds lie below {}", seeds().len(), corpus.display());
    Ok(())
}
