//! The Rust files of the workspace.

use std::fs;
use std::path::{Path, PathBuf};

use crate::tidy::code;

/// A Rust file.
#[derive(Debug)]
pub(crate) struct SourceFile {
    /// Its path from the root of the workspace, with `/`.
    pub(crate) path: String,
    /// Its lines.
    pub(crate) lines: Vec<String>,
    /// The same lines without comments and without what stands in quotes.
    pub(crate) code: Vec<String>,
}

impl SourceFile {
    pub(crate) fn of(path: &str, text: &str) -> Self {
        Self {
            path: path.to_owned(),
            lines: text.lines().map(str::to_owned).collect(),
            code: code::of(text),
        }
    }

    /// Whether the whole file is tests.
    pub(crate) fn is_test(&self) -> bool {
        let path = &self.path;
        path.ends_with("/tests.rs")
            || path.contains("/tests/")
            || path.starts_with("conformance-tests/")
    }

    /// The number of lines before the tests in the same file.
    pub(crate) fn code_lines(&self) -> usize {
        let is_test_module = |pair: &[String]| {
            pair[0].trim() == "#[cfg(test)]"
                && pair[1].trim_start().starts_with("mod ")
                && pair[1].ends_with('{')
        };
        self.lines
            .windows(2)
            .position(is_test_module)
            .unwrap_or(self.lines.len())
    }
}

/// Reads all Rust files below `root` that belong to the project.
pub(crate) fn read_all(root: &Path) -> Result<Vec<SourceFile>, String> {
    let mut files = Vec::new();
    collect(root, root, &mut files)?;
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

fn collect(root: &Path, folder: &Path, files: &mut Vec<SourceFile>) -> Result<(), String> {
    let fails = |e: std::io::Error| format!("{}: {e}", folder.display());
    for entry in fs::read_dir(folder).map_err(fails)? {
        let path: PathBuf = entry.map_err(fails)?.path();
        let name = path
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        if path.is_dir() {
            if name != "target" && !name.starts_with('.') {
                collect(root, &path, files)?;
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
            let relative = path.strip_prefix(root).unwrap_or(&path);
            let path = relative.to_string_lossy().replace('\\', "/");
            files.push(SourceFile::of(&path, &text));
        }
    }
    Ok(())
}
