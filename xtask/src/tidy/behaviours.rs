//! Every behaviour names tests that exist.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::tidy::source::SourceFile;

const FILE: &str = "docs/behaviours.md";

pub(crate) fn check(
    root: &Path,
    files: &[SourceFile],
    faults: &mut Vec<String>,
) -> Result<(), String> {
    let text = fs::read_to_string(root.join(FILE)).map_err(|e| format!("{FILE}: {e}"))?;
    let functions: BTreeSet<&str> = files
        .iter()
        .flat_map(|file| &file.lines)
        .filter_map(|line| function(line))
        .collect();
    check_table(&text, &functions, faults);
    Ok(())
}

/// Rows are `| id | behaviour | tests |`; tests are names in backquotes, or `later: why`.
fn check_table(text: &str, functions: &BTreeSet<&str>, faults: &mut Vec<String>) {
    for (index, line) in text.lines().enumerate() {
        let cells: Vec<&str> = line
            .trim()
            .trim_matches('|')
            .split('|')
            .map(str::trim)
            .collect();
        let [id, .., tests] = cells[..] else { continue };
        let is_id = id.len() >= 2
            && id.starts_with(|c: char| c.is_ascii_uppercase())
            && id[1..].chars().all(|c| c.is_ascii_digit());
        if !is_id || tests.starts_with("later: ") {
            continue;
        }
        let names: Vec<&str> = tests.split('`').skip(1).step_by(2).collect();
        if names.is_empty() {
            faults.push(format!(
                "{FILE}:{}: {id} names neither a test nor why it comes later",
                index + 1
            ));
        }
        for name in names {
            let last = name.rsplit("::").next().unwrap_or(name);
            if !functions.contains(last) {
                faults.push(format!(
                    "{FILE}:{}: {id} names `{name}`, which does not exist",
                    index + 1
                ));
            }
        }
    }
}

fn function(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let rest = line.strip_prefix("pub ").unwrap_or(line);
    let rest = rest
        .strip_prefix("pub(crate) ")
        .unwrap_or(rest)
        .strip_prefix("fn ")?;
    rest.split(['(', '<']).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_do_not_exist_are_found() {
        let functions = BTreeSet::from(["p1_reads_nothing"]);
        let mut faults = Vec::new();
        let text = "| P1 | a | `p1_reads_nothing` |\n| P2 | b | `p2_gone` |\n| P3 | c | |\n| Q1 | d | later: timers |\n";
        check_table(text, &functions, &mut faults);
        assert_eq!(faults.len(), 2, "{faults:?}");
    }
}
