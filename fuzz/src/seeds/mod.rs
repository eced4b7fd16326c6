//! What fuzzing begins with: small inputs of every shape, made by the encoders.

mod manifests;
mod segments;
mod texts;

use crate::targets::Target;

/// An input of a target.
#[derive(Clone, Debug)]
pub struct Seed {
    /// The target.
    pub target: Target,
    /// The name of its file; it begins with the verdict.
    pub name: &'static str,
    /// The input.
    pub bytes: Vec<u8>,
}

impl Seed {
    fn new(target: Target, name: &'static str, bytes: impl Into<Vec<u8>>) -> Self {
        Self {
            target,
            name,
            bytes: bytes.into(),
        }
    }
}

/// All seeds.
pub fn seeds() -> Vec<Seed> {
    [manifests::seeds(), segments::seeds(), texts::seeds()].concat()
}

/// `bytes` with one bit flipped.
fn flipped(bytes: &[u8], index: usize) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[index] ^= 4;
    bytes
}
