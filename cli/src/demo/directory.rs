//! The demo's directory: made, and emptied only if an earlier demo made it.

use std::fs;
use std::path::Path;

use stateline::{Error, ErrorKind, Result};

/// The file that says that a demo made the directory.
const MARKER: &str = "made-by-stateline-demo";

/// Makes `dir`, or empties it if an earlier demo made it. Says whether there was one.
///
/// # Errors
/// [`ErrorKind::Invalid`] if it holds anything else, or cannot be written.
pub(crate) fn prepare(dir: &Path) -> Result<bool> {
    let bad =
        |message: &'static str| Error::new(ErrorKind::Invalid, message).with("dir", dir.display());
    let unusable = |e: std::io::Error| bad("the demo's directory cannot be used").because(e);
    let marker = dir.join(MARKER);
    let had_demo = marker.exists();
    if had_demo {
        fs::remove_dir_all(dir).map_err(unusable)?;
    } else if dir.exists() {
        let is_empty = fs::read_dir(dir).map_err(unusable)?.next().is_none();
        if !is_empty {
            return Err(bad(
                "the directory holds something that no demo made; give another --dir",
            ));
        }
    }
    fs::create_dir_all(dir).map_err(unusable)?;
    fs::write(&marker, "The next demo may empty this directory.\n").map_err(unusable)?;
    Ok(had_demo)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_demo_made_is_emptied() {
        let dir = tempfile::tempdir().expect("a directory");
        let demo = dir.path().join("demo");
        assert!(!prepare(&demo).expect("it is made"));
        fs::write(demo.join("snapshot"), "x").expect("written");
        assert!(prepare(&demo).expect("a demo made it"));
        assert!(!demo.join("snapshot").exists());

        let other = dir.path().join("other");
        fs::create_dir(&other).expect("made");
        fs::write(other.join("thesis"), "x").expect("written");
        let e = prepare(&other).expect_err("it is somebody's");
        assert_eq!(e.kind(), ErrorKind::Invalid);
        assert!(other.join("thesis").exists());
    }
}
