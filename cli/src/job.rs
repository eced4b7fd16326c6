//! A job in a local directory, as every command takes it.

use std::path::PathBuf;

use clap::Args;
use stateline::prelude::*;
use stateline::{Error, ErrorKind, Position, Result};

use crate::demo;

/// Which job, and where.
#[derive(Args)]
pub(crate) struct JobArguments {
    /// The job's directory.
    dir: PathBuf,
    /// The job's name.
    #[arg(long, default_value = demo::JOB)]
    job: String,
}

impl JobArguments {
    /// Opens the job to look into it; nothing is written.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] if the directory is not there or holds no job.
    pub(crate) fn open(&self) -> Result<SnapshotStore> {
        let missing =
            |message| Err(Error::new(ErrorKind::NotFound, message).with("dir", self.dir.display()));
        if !self.dir.is_dir() {
            return missing("there is no such directory");
        }
        if !self.dir.join("epochs").is_dir() {
            return missing("the directory holds no job: nobody has claimed one in it");
        }
        let storage = Storage::local(&self.dir)?;
        let job = JobId::new(&*self.job)?;
        SnapshotStore::open_to_read(storage, job, SystemEnvironment::shared())
    }
}

/// A snapshot's place, as `ls` prints it: epoch, a hyphen, id.
///
/// # Errors
/// A sentence for the user.
pub(crate) fn position(text: &str) -> std::result::Result<Position, String> {
    let parsed = text.split_once('-').and_then(|(epoch, id)| {
        let (epoch, id) = (epoch.parse().ok()?, id.parse().ok()?);
        Some(Position::new(
            stateline::Epoch(epoch),
            stateline::SnapshotId(id),
        ))
    });
    parsed.ok_or_else(|| "expected epoch and snapshot, as in 2-17".to_owned())
}
