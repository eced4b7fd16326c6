//! What a process that was killed leaves on a local file system: objects that were not whole yet,
//! under the name `{name}#{number}`. No listing shows them.

use std::fs;
use std::path::PathBuf;

use crate::error::{Error, ErrorKind, Result};
use crate::names::{Folder, ObjectName};
use crate::storage::Storage;

impl Storage {
    /// Deletes the unfinished objects of a folder that `dooms` by the name that they would have
    /// got, and says how many there were and their bytes. Other stores leave none that can be
    /// seen.
    ///
    /// # Errors
    /// [`ErrorKind::Transient`] if the file system refuses.
    pub(crate) fn delete_staged(
        &self,
        folder: Folder,
        dooms: impl Fn(&ObjectName) -> bool,
    ) -> Result<(u64, u64)> {
        let Some(directory) = &self.directory else {
            return Ok((0, 0));
        };
        let fails = |e: std::io::Error, path: PathBuf| {
            Error::new(ErrorKind::Transient, "an unfinished object stays")
                .with("path", path.display())
                .because(e)
        };
        let directory = directory.join(folder.as_str());
        let found = match fs::read_dir(&directory) {
            Ok(found) => found,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok((0, 0)),
            Err(e) => return Err(fails(e, directory)),
        };
        let mut deleted = (0, 0);
        for file in found {
            let file = file.map_err(|e| fails(e, directory.clone()))?;
            let name = file.file_name();
            let object = name.to_str().and_then(|name| object_of(folder, name));
            if !object.is_some_and(|object| dooms(&object)) {
                continue;
            }
            let bytes = file.metadata().map_or(0, |meta| meta.len());
            match fs::remove_file(file.path()) {
                Ok(()) => deleted = (deleted.0 + 1, deleted.1 + bytes),
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
                Err(e) => return Err(fails(e, file.path())),
            }
        }
        Ok(deleted)
    }
}

/// The object that the file `name` was to become, if it is an unfinished one.
fn object_of(folder: Folder, name: &str) -> Option<ObjectName> {
    let (name, number) = name.split_once('#')?;
    number.parse::<u64>().ok()?;
    format!("{}/{name}", folder.as_str()).parse().ok()
}
