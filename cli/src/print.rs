//! Lines on standard output.

use std::io::{ErrorKind, Write};

/// Prints a line. Whoever reads may have heard enough and left: that is no error of ours. If it
/// cannot be written for another reason, the command ends with status 2, as its answer is lost.
pub(crate) fn line(text: impl std::fmt::Display) {
    match writeln!(std::io::stdout().lock(), "{text}") {
        Ok(()) => {}
        Err(e) if e.kind() == ErrorKind::BrokenPipe => {}
        Err(e) => {
            eprintln!("error: standard output cannot be written: {e}");
            std::process::exit(2);
        }
    }
}
