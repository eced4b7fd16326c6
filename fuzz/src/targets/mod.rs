//! The targets by name, and what they share.

mod codec;
mod manifest;
mod mutation;
mod name;
mod options;
mod record;
mod roundtrip;
mod segment;

use std::str::FromStr;

use backend_core::{Error, ErrorKind};

use crate::layout::{Manifest, Record, Segment};
use crate::memory::alone;
use mutation::{Fuzzer, mutate_parts};

/// Whether the bytes were what the target is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// They were decoded, and all that must hold for them does.
    Accepted,
    /// They were refused, as damage is.
    Refused,
}

impl Verdict {
    fn of(accepted: bool) -> Self {
        if accepted {
            Self::Accepted
        } else {
            Self::Refused
        }
    }
}

/// What is fuzzed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// Manifests, whole and by sections.
    Manifest,
    /// Claims and condemn records.
    Record,
    /// Segments: footer, stream, single keys.
    Segment,
    /// Entries that are written as a segment and read back.
    SegmentRoundtrip,
    /// Names of objects.
    Name,
    /// Key and value codecs.
    Codec,
    /// Settings as JSON.
    Options,
}

impl Target {
    /// All targets.
    pub const ALL: [Self; 7] = [
        Self::Manifest,
        Self::Record,
        Self::Segment,
        Self::SegmentRoundtrip,
        Self::Name,
        Self::Codec,
        Self::Options,
    ];

    /// The name, which is also that of the folder in the corpus.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Manifest => "manifest",
            Self::Record => "record",
            Self::Segment => "segment",
            Self::SegmentRoundtrip => "segment_roundtrip",
            Self::Name => "name",
            Self::Codec => "codec",
            Self::Options => "options",
        }
    }

    /// Holds what the target is about against `bytes`.
    ///
    /// # Panics
    /// If the code under test panics, takes more memory than the bytes justify, or accepts what
    /// it must not.
    pub fn run(self, bytes: &[u8]) -> Verdict {
        let _alone = alone();
        Verdict::of(match self {
            Self::Manifest => manifest::check(bytes),
            Self::Record => record::check(bytes),
            Self::Segment => segment::check(bytes),
            Self::SegmentRoundtrip => roundtrip::check(bytes),
            Self::Name => name::check(bytes),
            Self::Codec => codec::check(bytes),
            Self::Options => options::check(bytes),
        })
    }

    /// Changes `data[..len]`, in place and to at most `len_max` bytes, and answers the new
    /// length. `fuzzer` changes plain bytes in the same way; files with checksums are taken
    /// apart first.
    pub fn mutate(
        self,
        data: &mut [u8],
        len: usize,
        len_max: usize,
        seed: u32,
        fuzzer: &mut Fuzzer<'_>,
    ) -> usize {
        let change = match self {
            Self::Manifest => mutate_parts::<Manifest>,
            Self::Record => mutate_parts::<Record>,
            Self::Segment => mutate_parts::<Segment>,
            Self::SegmentRoundtrip | Self::Name | Self::Codec | Self::Options => {
                return fuzzer(data, len, len_max);
            }
        };
        change(data, len, len_max, seed, fuzzer)
    }
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = || Self::ALL.map(Self::name).join(", ");
        Self::ALL
            .into_iter()
            .find(|target| target.name() == text)
            .ok_or_else(|| format!("no target `{text}`; there are {}", known()))
    }
}

/// A refusal says what to do about damage, and what is damaged.
fn check_refusal(error: &Error) {
    let known = [
        ErrorKind::Corrupt,
        ErrorKind::Unsupported,
        ErrorKind::Mismatch,
        ErrorKind::Limit,
    ];
    assert!(
        known.contains(&error.kind()),
        "stored bytes are refused as if the call were wrong: {error}"
    );
    assert!(
        error.fact("object").is_some(),
        "a refusal does not name the object: {error}"
    );
}
