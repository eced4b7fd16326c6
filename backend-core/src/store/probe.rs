//! Whether a store can do what the protocol rests on.

use bytes::Bytes;

use crate::error::{Error, ErrorKind, Result};
use crate::ids::UniqueId;
use crate::names::{Folder, ObjectName};
use crate::store::protocol::CreateAnswer;
use crate::store::remote::{Remote, Tries};

const FIRST: Bytes = Bytes::from_static(b"stateline probe: first");
const SECOND: Bytes = Bytes::from_static(b"stateline probe: second");

/// Creates an object twice, reads it, lists it and removes it.
///
/// # Errors
/// [`ErrorKind::Unsupported`] that says what the store did: it does not refuse to create what
/// is there, or does not list what it has created. Else those of the requests.
pub(super) async fn probe(remote: &Remote) -> Result<()> {
    let name = ObjectName::Probe(UniqueId(remote.env.unique()));
    let first = create(remote, name, FIRST).await;
    let outcome = match first {
        // A try that was in doubt may have created the object, so `Exists` is as good.
        Ok(_) => check(remote, name).await,
        Err(e) => Err(e),
    };
    // What is left behind harms nobody; a store that does not delete can still be used.
    let _ = remote.delete(name).await;
    outcome
}

async fn check(remote: &Remote, name: ObjectName) -> Result<()> {
    if create(remote, name, SECOND).await? == CreateAnswer::Created {
        return Err(refused(
            name,
            "the store replaced an object that was to be created only",
        ));
    }
    match remote.get(name, FIRST.len() as u64 * 2).await? {
        Some(bytes) if bytes == FIRST => {}
        Some(_) => {
            return Err(refused(
                name,
                "the store returned other bytes than were put",
            ));
        }
        None => return Err(refused(name, "the store does not find what it has created")),
    }
    let listed = remote.list(Folder::Probe).await?;
    if listed.iter().any(|object| object.name == name) {
        Ok(())
    } else {
        Err(refused(name, "the store does not list what it has created"))
    }
}

async fn create(remote: &Remote, name: ObjectName, bytes: Bytes) -> Result<CreateAnswer> {
    let mut tries = Tries::default();
    loop {
        match remote.create_once(name, bytes.clone()).await? {
            (_, Some(doubt)) => remote.pause(&mut tries, doubt).await?,
            (answer, None) => return Ok(answer),
        }
    }
}

fn refused(name: ObjectName, message: &'static str) -> Error {
    Error::new(ErrorKind::Unsupported, message).with("object", name)
}
