//! What a compiler cannot see.

mod behaviours;
mod code;
mod imports;
mod lines;
mod packages;
mod readme;
mod source;

use std::path::Path;

/// All faults below `root`, each a line that begins with its place.
///
/// # Errors
/// If a file cannot be read.
pub(crate) fn check(root: &Path) -> Result<Vec<String>, String> {
    let files = source::read_all(root)?;
    let mut faults = Vec::new();
    for file in &files {
        lines::check(file, &mut faults);
    }
    imports::check(&files, &mut faults);
    packages::check(root, &mut faults)?;
    readme::check(root, &mut faults)?;
    behaviours::check(root, &files, &mut faults)?;
    faults.sort();
    Ok(faults)
}
