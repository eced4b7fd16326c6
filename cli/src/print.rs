//! Lines on standard output.

use std::io::Write;

/// Prints a line. Whoever reads may have heard enough and left: that is no error of ours.
pub(crate) fn line(text: impl std::fmt::Display) {
    let _ = writeln!(std::io::stdout().lock(), "{text}");
}
