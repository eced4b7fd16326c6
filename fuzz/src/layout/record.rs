//! A claim or condemn record: a body and its digest.

use crate::dice::Dice;
use crate::layout::Layout;

const DIGEST_BYTES: usize = 32;

/// A record without its digest.
#[derive(Debug)]
pub(crate) struct Record(Vec<u8>);

impl Layout for Record {
    fn take_apart(bytes: &[u8]) -> Option<Self> {
        let body = bytes.len().checked_sub(DIGEST_BYTES)?;
        Some(Self(bytes[..body].to_vec()))
    }

    fn loosen(&mut self, _dice: &mut Dice) {}

    fn rearrange(&mut self, _dice: &mut Dice) {}

    fn pieces(&mut self) -> Vec<&mut Vec<u8>> {
        vec![&mut self.0]
    }

    fn assemble(&self) -> Vec<u8> {
        let mut bytes = self.0.clone();
        bytes.extend(blake3::hash(&self.0).as_bytes());
        bytes
    }
}
