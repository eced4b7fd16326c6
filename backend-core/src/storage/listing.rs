//! What lies in a folder of a job's directory.

use std::sync::atomic::Ordering;

use futures::StreamExt;
use futures::stream::BoxStream;
use object_store::ObjectMeta;

use crate::error::{Error, ErrorKind, Result};
use crate::names::{Folder, ObjectName};
use crate::storage::Storage;

/// An object in a listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListedObject {
    /// Its name.
    pub name: ObjectName,
    /// Its size.
    pub bytes: u64,
    /// When it was created, in milliseconds since 1970 by the store's clock.
    pub modified_ms: u64,
}

/// Something that lies in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listed {
    /// An object of the job.
    Object(ListedObject),
    /// Something that no version of this crate writes, with its size.
    Stranger(String, u64),
}

/// The most objects in one folder that a listing takes.
pub const LISTED_OBJECTS_MAX: usize = 16 << 20;

impl Storage {
    /// The objects of a folder, by name.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`] if something lies there that no version of this crate writes: it
    /// may be an object that was renamed, so it is not passed over.
    /// [`ErrorKind::Transient`] if the store did not answer.
    pub async fn list(&self, folder: Folder) -> Result<Vec<ListedObject>> {
        let mut objects = Vec::new();
        for listed in self.list_all(folder).await? {
            match listed {
                Listed::Object(object) => objects.push(object),
                Listed::Stranger(name, _) => {
                    return Err(Error::new(
                        ErrorKind::Corrupt,
                        "a folder holds what is no object of the job: move it elsewhere, or give it its name \
                         back if it was renamed",
                    )
                    .with("folder", folder.as_str())
                    .with("object", name));
                }
            }
        }
        objects.sort_unstable_by_key(|object| object.name);
        Ok(objects)
    }

    /// All that lies in a folder, in no particular order.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`] for more than [`LISTED_OBJECTS_MAX`] objects; [`ErrorKind::Transient`]
    /// if the store did not answer.
    pub async fn list_all(&self, folder: Folder) -> Result<Vec<Listed>> {
        let mut stream = self.list_each(folder);
        let mut all = Vec::new();
        while let Some(listed) = stream.next().await {
            all.push(listed?);
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

    /// All that lies in a folder, in the order in which the store lists it: for folders that are
    /// larger than memory.
    ///
    /// Left out are the empty objects by which consoles and file systems show a folder, and
    /// hidden files, whose names begin with a dot: no object of a job is named so.
    ///
    /// # Errors
    /// Each item's is [`ErrorKind::Transient`] if the store did not answer.
    pub fn list_each(&self, folder: Folder) -> BoxStream<'static, Result<Listed>> {
        self.requests.lists.fetch_add(1, Ordering::Relaxed);
        let prefix = self.root.clone().join(folder.as_str());
        let this = self.clone();
        let listed = self.store.list(Some(&prefix)).filter_map(move |found| {
            let item = match found {
                Ok(found) => this.listed(folder, &found).map(Ok),
                Err(object_store::Error::NotFound { .. }) => None,
                Err(e) => Some(Err(Error::new(
                    ErrorKind::Transient,
                    "the object store did not list",
                )
                .with("folder", folder.as_str())
                .because(e))),
            };
            std::future::ready(item)
        });
        listed.boxed()
    }

    pub(super) fn listed(&self, folder: Folder, found: &ObjectMeta) -> Option<Listed> {
        let parts: Vec<_> = found.location.prefix_match(&self.root)?.collect();
        let parts: Vec<&str> = parts.iter().map(AsRef::as_ref).collect();
        let is_marker = parts == [folder.as_str()] && found.size == 0;
        let is_hidden = parts.last().is_some_and(|name| name.starts_with('.'));
        if is_marker || is_hidden {
            return None;
        }
        let bytes = found.size;
        let modified_ms = u64::try_from(found.last_modified.timestamp_millis()).unwrap_or(0);
        Some(match parts.join("/").parse() {
            Ok(name) => Listed::Object(ListedObject {
                name,
                bytes,
                modified_ms,
            }),
            Err(_) => Listed::Stranger(found.location.to_string(), bytes),
        })
    }
}
