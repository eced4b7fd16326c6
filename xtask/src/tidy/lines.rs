//! What is wrong within one file.

use crate::tidy::source::SourceFile;

/// A file with more lines is more than one noun.
const FILE_LINES_MAX: usize = 500;
/// A function with more lines does not fit a screen.
const FUNCTION_LINES_MAX: usize = 70;
/// The one file that reads the system's clock.
const CLOCK: &str = "backend-core/src/clock.rs";

/// Words that do not stand in code, in code outside of tests, and in no line at all.
const BANNED: [(&str, &str); 4] = [
    ("#[allow(", "a bare `allow`: use `expect` with a reason"),
    ("#![allow(", "a bare `allow`: use `expect` with a reason"),
    ("#[path", "`#[path]`: a module lies where its name says"),
    (
        "#[doc(hidden)]",
        "`doc(hidden)`: what is public is documented",
    ),
];
const BANNED_OUTSIDE_TESTS: [(&str, &str); 3] = [
    (".unwrap()", "`unwrap`: an `expect` states the invariant"),
    ("todo!(", "unfinished code"),
    ("unimplemented!(", "unfinished code"),
];

pub(crate) fn check(file: &SourceFile, faults: &mut Vec<String>) {
    if file.lines.len() > FILE_LINES_MAX {
        faults.push(format!(
            "{}: {} lines, at most {FILE_LINES_MAX}",
            file.path,
            file.lines.len()
        ));
    }
    let code_lines = if file.is_test() { 0 } else { file.code_lines() };
    let is_xtask = file.path.starts_with("xtask/");
    for (index, (line, code)) in file.lines.iter().zip(&file.code).enumerate() {
        let mut fault = |what: &str| faults.push(format!("{}:{}: {what}", file.path, index + 1));
        let in_tests = index >= code_lines;
        let comment = line.split_once("//").map_or("", |(_, comment)| comment);
        if !is_xtask {
            for word in ["TODO", "FIXME", "XXX"] {
                if comment.contains(word) {
                    fault("a note to self: do it, or file an issue");
                }
            }
            for place in ["/home/", "/root/", "/Users/"] {
                if line.contains(place) {
                    fault("names a place on somebody's machine");
                }
            }
        }
        BANNED
            .iter()
            .filter(|(word, _)| code.contains(word))
            .for_each(|(_, what)| fault(what));
        if !in_tests {
            let banned = BANNED_OUTSIDE_TESTS
                .iter()
                .filter(|(word, _)| code.contains(word));
            banned.for_each(|(_, what)| fault(what));
            if code.contains("::*") && !code.contains("prelude::*") {
                fault("a glob import");
            }
            let reads_clock = code.contains("SystemTime::now") || code.contains("Instant::now");
            if reads_clock && file.path != CLOCK && !is_xtask {
                fault("reads the system's clock: take a clock");
            }
        }
        if code.trim_start().starts_with("matches!(") && is_statement(&file.code, index) {
            fault("a `matches!` whose answer nobody reads");
        }
    }
    if !file.is_test() {
        check_functions(file, faults);
    }
}

/// Whether the macro that begins line `index` is a whole statement: nothing before it in the
/// statement takes its answer, and a semicolon follows its last bracket.
fn is_statement(code: &[String], index: usize) -> bool {
    let mut before = code[..index].iter().rev().map(|line| line.trim_end());
    let last = before.find_map(|line| line.chars().last());
    if !last.is_none_or(|c| ";{}".contains(c)) {
        return false;
    }
    let mut depth = 0;
    for c in code[index..].iter().flat_map(|line| line.chars()) {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            c if depth == 0 && !c.is_alphanumeric() && c != '!' && !c.is_whitespace() => {
                return c == ';';
            }
            _ => {}
        }
    }
    false
}

/// Counts the lines of each function, from its `fn` to the brace that closes it.
fn check_functions(file: &SourceFile, faults: &mut Vec<String>) {
    let mut open: Vec<(usize, i32, String)> = Vec::new();
    let mut depth = 0;
    let mut pending: Option<(usize, String)> = None;
    for (index, code) in file.code.iter().enumerate() {
        if let Some(name) = function_name(code) {
            pending = Some((index, name));
        }
        for c in code.chars() {
            match c {
                '{' => {
                    if let Some((start, name)) = pending.take() {
                        open.push((start, depth, name));
                    }
                    depth += 1;
                }
                '}' => {
                    depth -= 1;
                    if let Some((start, _, name)) = open.pop_if(|(_, at, _)| *at == depth) {
                        let lines = index - start + 1;
                        if lines > FUNCTION_LINES_MAX {
                            faults.push(format!(
                                "{}:{}: function `{name}` has {lines} lines, at most {FUNCTION_LINES_MAX}",
                                file.path,
                                start + 1
                            ));
                        }
                    }
                }
                ';' if open.last().is_none_or(|(_, at, _)| *at < depth) => pending = None,
                _ => {}
            }
        }
    }
}

fn function_name(code: &str) -> Option<String> {
    let words = code.trim_start();
    let rest = words
        .strip_prefix("fn ")
        .or_else(|| words.split_once(" fn ").map(|(_, rest)| rest))?;
    let name: String = rest
        .chars()
        .take_while(|c| c.is_alphanumeric() || *c == '_')
        .collect();
    (!name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(path: &str, text: &str) -> Vec<String> {
        let mut faults = Vec::new();
        check(&SourceFile::of(path, text), &mut faults);
        faults
    }

    #[test]
    fn each_planted_fault_is_found() {
        let planted = [
            ("let x = y.unwrap();", "unwrap"),
            ("use std::io::*;", "glob"),
            ("pub use std::io::*;", "glob"),
            ("use std::{\n    io::*,\n};", "glob"),
            ("f();\nmatches!(\n    a,\n    B\n);", "matches"),
            ("#[allow(dead_code)]", "allow"),
            ("// TODO: later", "note to self"),
            ("let t = Instant::now();", "clock"),
            ("matches!(a, B);", "matches"),
            ("// see /home/ada/notes", "somebody's machine"),
            ("todo!()", "unfinished"),
        ];
        for (line, what) in planted {
            let found = faults("backend-core/src/a.rs", line);
            assert!(
                found.len() == 1 && found[0].contains(what),
                "{line}: {found:?}"
            );
        }
    }

    #[test]
    fn texts_and_tests_may_say_more() {
        assert!(faults("a/src/b.rs", r#"let x = "y.unwrap()";"#).is_empty());
        assert!(faults("a/src/b.rs", "let x =\n    matches!(a, B);").is_empty());
        assert!(faults("a/src/b.rs", "f();\nmatches!(a, B)\n}").is_empty());
        assert!(faults("a/src/b/tests.rs", "let x = y.unwrap(); use super::*;").is_empty());
        assert!(
            faults(
                "a/src/b.rs",
                "#[cfg(test)]\nmod tests {\n    use super::*;\n}"
            )
            .is_empty()
        );
        assert!(faults("backend-core/src/clock.rs", "Instant::now()").is_empty());
    }

    #[test]
    fn long_files_and_functions_are_found() {
        let long = "let x = 1;\n".repeat(71);
        let found = faults("a/src/b.rs", &format!("fn f() {{\n{long}}}\nfn g() {{}}\n"));
        assert!(
            found.len() == 1 && found[0].contains("`f` has 73 lines"),
            "{found:?}"
        );
        let text = "    \"}\n".to_owned() + &"a\n".repeat(71) + "\";\n";
        let found = faults("a/src/b.rs", &format!("fn f() {{\n{text}}}\n"));
        assert!(
            found.len() == 1,
            "a brace in a text closes nothing: {found:?}"
        );
        let found = faults("a/src/b.rs", &"const A: u8 = 1;\n".repeat(501));
        assert!(
            found.len() == 1 && found[0].contains("501 lines"),
            "{found:?}"
        );
    }
}
