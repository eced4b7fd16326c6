//! Every file of the corpus, against its target: what was found once stays mended.

use std::fs;
use std::path::{Path, PathBuf};

use fuzz::{Target, Verdict, seeds};

const CORPUS_BYTES_MAX: u64 = 300 << 10;

fn folder(target: Target) -> PathBuf {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    corpus.join(target.name())
}

fn files(target: Target) -> Vec<PathBuf> {
    let listed = fs::read_dir(folder(target)).expect("every target has a corpus");
    let mut files: Vec<PathBuf> = listed
        .map(|entry| entry.expect("is listed").path())
        .collect();
    files.sort();
    files
}

/// Files called `accepted-..` are accepted, those called `refused-..` are refused; all others may
/// be either.
fn replay(target: Target) {
    for path in files(target) {
        let bytes = fs::read(&path).expect("a file of the corpus is read");
        println!("{}", path.display());
        let verdict = target.run(&bytes);
        let name = path
            .file_name()
            .expect("a file has a name")
            .to_string_lossy();
        if name.starts_with("accepted-") {
            assert_eq!(verdict, Verdict::Accepted, "{name}");
        } else if name.starts_with("refused-") {
            assert_eq!(verdict, Verdict::Refused, "{name}");
        }
    }
}

#[test]
fn corpus_of_manifest_holds() {
    replay(Target::Manifest);
}

#[test]
fn corpus_of_record_holds() {
    replay(Target::Record);
}

#[test]
fn corpus_of_segment_holds() {
    replay(Target::Segment);
}

#[test]
fn corpus_of_segment_roundtrip_holds() {
    replay(Target::SegmentRoundtrip);
}

#[test]
fn corpus_of_name_holds() {
    replay(Target::Name);
}

#[test]
fn corpus_of_codec_holds() {
    replay(Target::Codec);
}

#[test]
fn corpus_of_options_holds() {
    replay(Target::Options);
}

#[test]
fn corpus_is_small_and_has_every_seed() {
    let all = Target::ALL.into_iter().flat_map(files);
    let bytes: u64 = all
        .map(|path| fs::metadata(path).expect("is there").len())
        .sum();
    assert!(bytes <= CORPUS_BYTES_MAX, "{bytes} bytes");
    for seed in seeds() {
        let path = folder(seed.target).join(seed.name);
        assert!(
            path.is_file(),
            "`cargo run -p fuzz seeds` makes {}",
            path.display()
        );
    }
}
