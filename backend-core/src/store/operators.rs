//! Which operators a snapshot must have.

use std::collections::BTreeSet;

use crate::error::{Error, ErrorKind, Result};
use crate::ids::OperatorId;

/// The operators of a job, as far as its engine has said.
///
/// Unless told otherwise, a snapshot has every operator of the last confirmed one: a state that
/// nobody acknowledged would be gone for good.
#[derive(Clone, Debug, Default)]
pub(super) struct Operators {
    /// All operators, if the engine has named them.
    named: Option<BTreeSet<OperatorId>>,
    /// Those whose state is given up.
    dropped: BTreeSet<OperatorId>,
}

impl Operators {
    /// Snapshots have exactly these from now on; `last` are those of the last confirmed one.
    pub(super) fn name(
        &mut self,
        operators: BTreeSet<OperatorId>,
        last: &BTreeSet<OperatorId>,
    ) -> Result<()> {
        self.check_kept(&operators, last)?;
        self.named = Some(operators);
        Ok(())
    }

    pub(super) fn drop_state(&mut self, operator: OperatorId) {
        if let Some(named) = &mut self.named {
            named.remove(&operator);
        }
        self.dropped.insert(operator);
    }

    /// Whether a snapshot may have just the operators `got`.
    pub(super) fn check(
        &self,
        got: &BTreeSet<OperatorId>,
        last: &BTreeSet<OperatorId>,
    ) -> Result<()> {
        self.check_kept(got, last)?;
        let Some(named) = &self.named else {
            return Ok(());
        };
        if let Some(operator) = named.difference(got).next() {
            return Err(lacking(operator));
        }
        match got.difference(named).next() {
            None => Ok(()),
            Some(operator) => Err(Error::new(
                ErrorKind::Mismatch,
                "a snapshot has an operator that was not named: name it before the trigger",
            )
            .with("operator", operator)),
        }
    }

    fn check_kept(&self, got: &BTreeSet<OperatorId>, last: &BTreeSet<OperatorId>) -> Result<()> {
        let is_lost =
            |operator: &&OperatorId| !got.contains(operator) && !self.dropped.contains(operator);
        match last.iter().find(is_lost) {
            None => Ok(()),
            Some(operator) => Err(lacking(operator)),
        }
    }
}

fn lacking(operator: &OperatorId) -> Error {
    Error::new(
        ErrorKind::Mismatch,
        "an operator of the job is left out, and its state would be lost: acknowledge it, or drop its state first",
    )
    .with("operator", operator)
}
