//! A listing that also tells what should not be there, for whoever looks for damage.

use std::sync::atomic::Ordering;

use futures::StreamExt;

use crate::error::{Error, ErrorKind, Result};
use crate::names::{Folder, ObjectName};
use crate::storage::{LISTED_OBJECTS_MAX, Storage};

/// Something that lies in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Lying {
    /// An object of the job, with its size.
    Object(ObjectName, u64),
    /// Something that no version of this crate writes, with its size.
    Stranger(String, u64),
}

impl Storage {
    /// All that lies in a folder, in no particular order.
    ///
    /// # Errors
    /// As [`Storage::list`], which refuses strangers.
    pub(crate) async fn list_all(&self, folder: Folder) -> Result<Vec<Lying>> {
        self.requests.lists.fetch_add(1, Ordering::Relaxed);
        let prefix = self.root.clone().join(folder.as_str());
        let mut stream = self.store.list(Some(&prefix));
        let mut all = Vec::new();
        while let Some(found) = stream.next().await {
            let found = match found {
                Ok(found) => found,
                Err(object_store::Error::NotFound { .. }) => continue,
                Err(e) => {
                    let e = Error::new(ErrorKind::Transient, "the object store did not list")
                        .because(e);
                    return Err(e.with("folder", folder.as_str()));
                }
            };
            all.push(match self.name_of(&found.location, folder) {
                Ok(name) => Lying::Object(name, found.size),
                Err(_) => Lying::Stranger(found.location.to_string(), found.size),
            });
            if all.len() > LISTED_OBJECTS_MAX {
                return Err(
                    Error::new(ErrorKind::Limit, "a folder holds too many objects")
                        .with("folder", folder.as_str())
                        .with("objects_max", LISTED_OBJECTS_MAX),
                );
            }
        }
        Ok(all)
    }
}
