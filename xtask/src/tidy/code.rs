//! Rust without its comments and texts, so that a search for code finds code.

/// What the text is in the middle of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Within {
    Code,
    LineComment,
    /// How many block comments are open.
    BlockComment(u32),
    Text,
    /// The number of `#` that close it.
    RawText(usize),
}

/// The lines of `text` without comments and without what stands in quotes; the quotes stay.
pub(crate) fn of(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut within = Within::Code;
    let mut at = 0;
    while at < chars.len() {
        if chars[at] == '\n' {
            if within == Within::LineComment {
                within = Within::Code;
            }
            lines.push(std::mem::take(&mut line));
            at += 1;
            continue;
        }
        let next = chars.get(at + 1).copied();
        (within, at) = match within {
            Within::Code => code(&chars, at, &mut line),
            Within::BlockComment(open) => match (chars[at], next) {
                ('/', Some('*')) => (Within::BlockComment(open + 1), at + 2),
                ('*', Some('/')) if open == 1 => (Within::Code, at + 2),
                ('*', Some('/')) => (Within::BlockComment(open - 1), at + 2),
                _ => (within, at + 1),
            },
            // A newline behind the stroke is a line of the file all the same.
            Within::Text if chars[at] == '\\' && next != Some('\n') => (within, at + 2),
            Within::Text if chars[at] == '"' => close(&mut line, at + 1),
            Within::RawText(hashes) if closes(&chars, at, hashes) => {
                close(&mut line, at + 1 + hashes)
            }
            Within::LineComment | Within::Text | Within::RawText(_) => (within, at + 1),
        };
    }
    if !text.is_empty() && !text.ends_with('\n') {
        lines.push(line);
    }
    lines
}

fn close(line: &mut String, at: usize) -> (Within, usize) {
    line.push('"');
    (Within::Code, at)
}

fn closes(chars: &[char], at: usize, hashes: usize) -> bool {
    let end = chars.get(at + 1..at + 1 + hashes);
    chars[at] == '"' && end.is_some_and(|end| end.iter().all(|c| *c == '#'))
}

/// Takes one character of code, or the beginning of something else.
fn code(chars: &[char], at: usize, line: &mut String) -> (Within, usize) {
    let next = chars.get(at + 1).copied();
    match (chars[at], next) {
        ('/', Some('/')) => (Within::LineComment, at + 2),
        ('/', Some('*')) => (Within::BlockComment(1), at + 2),
        ('"', _) => {
            line.push('"');
            (Within::Text, at + 1)
        }
        ('r', Some('"' | '#')) if !ends_in_name(line) => {
            let hashes = chars[at + 1..].iter().take_while(|c| **c == '#').count();
            line.push('r');
            if chars.get(at + 1 + hashes) == Some(&'"') {
                line.push('"');
                return (Within::RawText(hashes), at + 2 + hashes);
            }
            (Within::Code, at + 1)
        }
        ('\'', Some('\\')) => {
            let end = chars.iter().skip(at + 3).position(|c| *c == '\'');
            (Within::Code, end.map_or(chars.len(), |end| at + 4 + end))
        }
        ('\'', Some(_)) if chars.get(at + 2) == Some(&'\'') => (Within::Code, at + 3),
        (c, _) => {
            line.push(c);
            (Within::Code, at + 1)
        }
    }
}

/// Whether a name goes on behind `line`; the marks of byte and C strings are none.
fn ends_in_name(line: &str) -> bool {
    let mut back = line.chars().rev();
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    match back.next() {
        Some('b' | 'c') => back.next().is_some_and(is_name),
        last => last.is_some_and(is_name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_texts_are_left_out() {
        assert_eq!(of(r#"let a = "{ // }"; // {"#), [r#"let a = ""; "#]);
        assert_eq!(of("a\n// b"), ["a", ""], "a line each");
        assert_eq!(of("if c == '{' { f('\\'') }"), ["if c ==  { f() }"]);
        assert_eq!(of("fn f<'a>(x: &'a str) {"), ["fn f<'a>(x: &'a str) {"]);
        assert_eq!(of("f('\\u{7b}', '\"', b'x')"), ["f(, , b)"]);
    }

    #[test]
    fn what_goes_over_lines_is_left_out() {
        assert_eq!(of("f(\"{\n}\\\n{\");\ng()"), ["f(\"", "", "\");", "g()"]);
        assert_eq!(of("a /* {\n/* } */ { */ b"), ["a ", " b"]);
        assert_eq!(of("r#\"{ \" }\n{\"#; x"), ["r\"", "\"; x"]);
        assert_eq!(of("br\"{\" + for\"{\""), ["br\"\" + for\"\""]);
        assert_eq!(of("r#type + \"a\\\\\" {"), ["r#type + \"\" {"]);
    }
}
