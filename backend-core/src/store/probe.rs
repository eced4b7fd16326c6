//! Whether a store can do what the protocol rests on.

use bytes::Bytes;

use crate::error::{Error, ErrorKind, Result};
use crate::ids::UniqueId;
use crate::names::{Folder, ObjectName};
use crate::storage::Listed;
use crate::store::protocol::CreateAnswer;
use crate::store::remote::{Remote, Tries};

const FIRST: Bytes = Bytes::from_static(b"stateline probe: first");
const SECOND: Bytes = Bytes::from_static(b"stateline probe: second");

/// Requests that create one object at the same time.
const RACERS: usize = 4;

/// Looks for an object that is not there, creates it, creates it again, reads it and lists it;
/// then lets several requests create another one at the same time. Both are removed.
///
/// # Errors
/// [`ErrorKind::Unsupported`] that says what the store did: it finds what is not there, does not
/// refuse to create what is there, lets two requests create one object, or does not list what
/// it has created. Else those of the requests.
pub(super) async fn probe(remote: &Remote) -> Result<()> {
    let alone = ObjectName::Probe(UniqueId(remote.env.unique()));
    let raced = ObjectName::Probe(UniqueId(remote.env.unique()));
    let outcome = match check(remote, alone).await {
        Ok(()) => race(remote, raced).await,
        refused => refused,
    };
    // What is left behind harms nobody; a store that does not delete can still be used.
    let _ = remote.delete(alone).await;
    let _ = remote.delete(raced).await;
    outcome
}

async fn check(remote: &Remote, name: ObjectName) -> Result<()> {
    if remote.size(name).await?.is_some() {
        return Err(refused(
            name,
            "the store finds an object that nobody created",
        ));
    }
    // A try that was in doubt may have created the object, so `Exists` is as good.
    create(remote, name, FIRST).await?;
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
    let listed = remote.list_all(Folder::Probe).await?;
    let is_it = |listed: &Listed| matches!(listed, Listed::Object(object) if object.name == name);
    if listed.iter().any(is_it) {
        Ok(())
    } else {
        Err(refused(name, "the store does not list what it has created"))
    }
}

/// A store that looks first and puts then passes a test by one request after the other.
async fn race(remote: &Remote, name: ObjectName) -> Result<()> {
    let bytes_of = |racer: usize| Bytes::from(format!("stateline probe: racer {racer}"));
    let racers = (0..RACERS).map(|racer| remote.create_once(name, bytes_of(racer)));
    let mut winners = Vec::new();
    let mut is_settled = true;
    for (racer, outcome) in futures::future::join_all(racers)
        .await
        .into_iter()
        .enumerate()
    {
        match outcome?.0 {
            CreateAnswer::Created => winners.push(racer),
            CreateAnswer::Exists => {}
            CreateAnswer::InDoubt => is_settled = false,
        }
    }
    match winners[..] {
        // The answer to the one that won was lost, and it was sent again.
        [] => match remote.get(name, 1 << 10).await? {
            Some(bytes) if (0..RACERS).any(|racer| bytes == bytes_of(racer)) => Ok(()),
            None if !is_settled => Ok(()),
            _ => Err(refused(
                name,
                "the store says of an object that nobody created that it is there",
            )),
        },
        [winner] => {
            let expected = bytes_of(winner);
            match remote.get(name, expected.len() as u64 * 2).await? {
                Some(bytes) if bytes == expected => Ok(()),
                _ => Err(refused(
                    name,
                    "the store holds another object than the one that it said was created",
                )),
            }
        }
        _ => Err(refused(
            name,
            "the store let several requests create the same object",
        )),
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
