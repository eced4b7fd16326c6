//! What a process that was killed leaves on a local file system: objects that were not whole yet,
//! under the name `{name}#{number}`. No listing shows them.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use crate::error::{Error, ErrorKind, Result};
use crate::names::{Folder, ObjectName};
use crate::storage::Storage;

/// An object that is not whole: somebody writes it, or died.
#[derive(Clone, Debug)]
pub(crate) struct Staged {
    /// The object that it is to become.
    pub(crate) object: ObjectName,
    /// Its size.
    pub(crate) bytes: u64,
    /// When it was written to, in milliseconds since 1970 by the file system's clock.
    pub(crate) modified_ms: u64,
    path: PathBuf,
}

impl Storage {
    /// The unfinished objects of a folder. Other stores leave none that can be seen.
    ///
    /// # Errors
    /// [`ErrorKind::Transient`] if the file system does not answer.
    pub(crate) fn staged(&self, folder: Folder) -> Result<Vec<Staged>> {
        let Some(directory) = &self.directory else {
            return Ok(Vec::new());
        };
        let directory = directory.join(folder.as_str());
        let found = match fs::read_dir(&directory) {
            Ok(found) => found,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(fails(e, &directory)),
        };
        let mut staged = Vec::new();
        for file in found {
            let file = file.map_err(|e| fails(e, &directory))?;
            let name = file.file_name();
            let Some(object) = name.to_str().and_then(|name| object_of(folder, name)) else {
                continue;
            };
            // One that is gone by now was finished.
            if let Ok(meta) = file.metadata() {
                let modified = meta.modified().unwrap_or(UNIX_EPOCH);
                let age = modified.duration_since(UNIX_EPOCH).unwrap_or_default();
                staged.push(Staged {
                    object,
                    bytes: meta.len(),
                    modified_ms: age.as_millis() as u64,
                    path: file.path(),
                });
            }
        }
        Ok(staged)
    }
}

impl Staged {
    /// Deletes it, and says whether it was still there.
    ///
    /// # Errors
    /// [`ErrorKind::Transient`] if the file system refuses.
    pub(crate) fn delete(&self) -> Result<bool> {
        match fs::remove_file(&self.path) {
            Ok(()) => Ok(true),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(false),
            Err(e) => Err(fails(e, &self.path)),
        }
    }
}

fn fails(e: std::io::Error, path: &Path) -> Error {
    Error::new(ErrorKind::Transient, "an unfinished object stays")
        .with("path", path.display())
        .because(e)
}

/// The object that the file `name` was to become, if it is an unfinished one.
fn object_of(folder: Folder, name: &str) -> Option<ObjectName> {
    let (name, number) = name.split_once('#')?;
    number.parse::<u64>().ok()?;
    format!("{}/{name}", folder.as_str()).parse().ok()
}
