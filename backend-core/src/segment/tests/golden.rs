//! The bytes of version 1, as they were when it was released: every later version reads them.

use bytes::Bytes;

use super::{read_all, tiny, with_every_feature, write};
use crate::segment::{SegmentLocation, SegmentMeta};

/// Written by this test when `STATELINE_BLESS` is set, for a new version of the format.
const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/segment-v1.bin");

#[test]
fn golden_segment_of_version_1_is_read() {
    let entries = with_every_feature();
    if std::env::var_os("STATELINE_BLESS").is_some() {
        std::fs::write(PATH, &write(tiny(), &entries).bytes).expect("the golden file is written");
    }
    let bytes = Bytes::from(std::fs::read(PATH).expect("the golden file is there"));
    let location = SegmentLocation::Inline(bytes.clone());
    let meta = SegmentMeta::decode(&location, &bytes).expect("the footer is whole");
    assert_eq!(
        read_all(&meta, &bytes).expect("the segment is whole"),
        entries
    );
}
