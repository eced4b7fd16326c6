//! The README's example is the one that is compiled and run.

use std::fs;
use std::path::Path;

pub(crate) fn check(root: &Path, faults: &mut Vec<String>) -> Result<(), String> {
    let read = |path: &str| fs::read_to_string(root.join(path)).map_err(|e| format!("{path}: {e}"));
    if shown(&read("README.md")?) != tested(&read("src/lib.rs")?) {
        faults.push("README.md: the example differs from the one that src/lib.rs tests".to_owned());
    }
    Ok(())
}

/// The first block of Rust.
fn shown(readme: &str) -> Vec<&str> {
    let lines = readme
        .lines()
        .skip_while(|line| !line.starts_with("```rust"));
    lines.skip(1).take_while(|line| *line != "```").collect()
}

/// The first example, without its hidden lines.
fn tested(source: &str) -> Vec<&str> {
    let text = source.lines().filter_map(|line| line.strip_prefix("//!"));
    let text = text.map(|line| line.strip_prefix(' ').unwrap_or(line));
    let example = text
        .skip_while(|line| *line != "```")
        .skip(1)
        .take_while(|line| *line != "```");
    example.filter(|line| !line.starts_with("# ")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_are_compared_without_hidden_lines() {
        let readme = "# A\n```rust,ignore\nlet a = 1;\n\nlet b = 2;\n```\nmore\n";
        let source =
            "//! ```\n//! # use x;\n//! let a = 1;\n//!\n//! let b = 2;\n//! ```\nfn f() {}\n";
        assert_eq!(shown(readme), tested(source));
        assert_ne!(shown(readme), tested(&source.replace("b = 2", "b = 3")));
    }
}
