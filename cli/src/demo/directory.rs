//! The demo's directory: made, locked, and emptied only if an earlier demo made it.

use std::fs::{self, File, TryLockError};
use std::io::{Read, Write};
use std::path::Path;

use stateline::{Error, ErrorKind, Result};

/// The file that says that a demo made the directory. A running demo holds a lock on it.
const MARKER: &str = "made-by-stateline-demo";

/// A directory that no other demo uses as long as this lives.
#[derive(Debug)]
pub(crate) struct Directory {
    /// Whether an earlier demo had left something there.
    pub(crate) was_emptied: bool,
    _lock: File,
}

impl Directory {
    /// Makes `dir`, or empties it if an earlier demo made it.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] if it holds anything else, cannot be written, or another demo uses
    /// it now.
    pub(crate) fn prepare(dir: &Path) -> Result<Self> {
        let bad = |message| Error::new(ErrorKind::Invalid, message).with("dir", dir.display());
        let unusable = |e: std::io::Error| bad("the demo's directory cannot be used").because(e);
        let marker = dir.join(MARKER);
        let had_demo = marker.exists();
        if !had_demo && dir.exists() && fs::read_dir(dir).map_err(unusable)?.next().is_some() {
            return Err(bad(
                "the directory holds something that no demo made; give another --dir",
            ));
        }
        fs::create_dir_all(dir).map_err(unusable)?;
        let mut options = File::options();
        options.read(true).append(true).create(true);
        let mut lock = options.open(&marker).map_err(unusable)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(bad(
                    "another demo is running in the directory; give another --dir",
                ));
            }
            Err(TryLockError::Error(e)) => return Err(unusable(e)),
        }
        let was_emptied = had_demo && empty(dir).map_err(unusable)?;
        let mut text = String::new();
        lock.read_to_string(&mut text).map_err(unusable)?;
        if text.is_empty() {
            lock.write_all(b"The next demo may empty this directory.\n")
                .map_err(unusable)?;
        }
        Ok(Self {
            was_emptied,
            _lock: lock,
        })
    }
}

/// Removes all but the marker; whether there was anything.
fn empty(dir: &Path) -> std::io::Result<bool> {
    let mut removed = false;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_name() == MARKER {
            continue;
        }
        if entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())?;
        } else {
            fs::remove_file(entry.path())?;
        }
        removed = true;
    }
    Ok(removed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_demo_made_is_emptied() {
        let dir = tempfile::tempdir().expect("a directory");
        let demo = dir.path().join("demo");
        assert!(!Directory::prepare(&demo).expect("it is made").was_emptied);
        fs::create_dir(demo.join("snapshots")).expect("made");
        fs::write(demo.join("snapshots/1"), "x").expect("written");
        let again = Directory::prepare(&demo).expect("a demo made it");
        assert!(again.was_emptied);
        assert!(!demo.join("snapshots").exists());

        let other = dir.path().join("other");
        fs::create_dir(&other).expect("made");
        fs::write(other.join("thesis"), "x").expect("written");
        let e = Directory::prepare(&other).expect_err("it is somebody's");
        assert_eq!(e.kind(), ErrorKind::Invalid);
        assert!(other.join("thesis").exists());
    }

    #[test]
    fn directory_of_a_running_demo_is_refused_and_kept() {
        let dir = tempfile::tempdir().expect("a directory");
        let running = Directory::prepare(dir.path()).expect("it is empty");
        fs::write(dir.path().join("snapshot"), "x").expect("written");
        let e = Directory::prepare(dir.path()).expect_err("a demo runs there");
        assert!(e.message().contains("another demo is running"), "{e}");
        assert!(dir.path().join("snapshot").exists());
        drop(running);
        let next = Directory::prepare(dir.path()).expect("it has ended");
        assert!(next.was_emptied);
    }

    #[test]
    fn place_that_cannot_be_a_directory_is_named() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("file");
        fs::write(&file, "x").expect("written");
        for place in [file.clone(), file.join("below")] {
            let e = Directory::prepare(&place).expect_err("a file is in the way");
            assert_eq!(e.fact("dir"), Some(&*place.display().to_string()), "{e}");
        }
    }
}
