//! Codecs of keys and values: what is decoded encodes to the same bytes, keys keep their order,
//! and values come back.

use std::collections::BTreeMap;
use std::fmt::Debug;

use backend_core::codec::{Codec, KeyCodec, Native, NativeValue, OrderedF64, Postcard};
use backend_core::{ErrorKind, Result};
use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::cursor::Cursor;
use crate::memory::bounded;

/// A string or list of its own for each element, and the facts of an error.
const BYTES_PER_BYTE: usize = 128;

pub(super) fn check(bytes: &[u8]) -> bool {
    let Some((kind, bytes)) = bytes.split_first() else {
        return false;
    };
    check_made(bytes);
    match kind % 24 {
        0 => key::<u8>(bytes),
        1 => key::<u64>(bytes),
        2 => key::<i128>(bytes),
        3 => key::<bool>(bytes),
        4 => key::<char>(bytes),
        5 => key::<OrderedF64>(bytes),
        6 => key::<String>(bytes),
        7 => key::<Vec<u8>>(bytes),
        8 => key::<[u8; 4]>(bytes),
        9 => key::<Option<String>>(bytes),
        10 => key::<(String, i64)>(bytes),
        11 => key::<(Bytes, Option<(u16, String)>, Vec<u8>)>(bytes),
        12 => key::<(
            (),
            Option<()>,
            (char, String),
            [u8; 2],
            bool,
            Option<Option<u8>>,
        )>(bytes),
        13 => native::<u64>(bytes),
        14 => native::<f64>(bytes),
        15 => native::<(char, bool, f32)>(bytes),
        16 => native::<String>(bytes),
        17 => native::<(Vec<u8>, String)>(bytes),
        18 => native::<Option<(Bytes, i16)>>(bytes),
        19 => native::<[(Vec<u8>, Option<u8>); 3]>(bytes),
        20 => native::<((), [u32; 2], (String, Option<String>), i128)>(bytes),
        21 => serde::<u64>(bytes),
        22 => serde::<Order>(bytes),
        _ => serde::<Vec<Order>>(bytes),
    }
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Order {
    id: u64,
    lines: Vec<(String, u32)>,
    side: Side,
    notes: BTreeMap<String, Option<i8>>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
enum Side {
    Buy,
    Sell { limit: i64 },
    Other(char, bool),
}

fn decoded<T>(bytes: &[u8], decode: impl FnOnce(&[u8]) -> Result<T>) -> Option<T> {
    let result = bounded("a value", BYTES_PER_BYTE * bytes.len(), || decode(bytes));
    result
        .inspect_err(|e| assert_eq!(e.kind(), ErrorKind::Corrupt, "{e}"))
        .ok()
}

fn key_bytes<K: KeyCodec>(key: &K) -> Vec<u8> {
    let mut bytes = Vec::new();
    key.encode(&mut bytes);
    key.with_encoded(|other| assert_eq!(bytes, other));
    bytes
}

/// The whole is one key, and its halves are two, whose order is that of their bytes.
fn key<K: KeyCodec<Owned = K> + Ord + Debug>(bytes: &[u8]) -> bool {
    let (a, b) = bytes.split_at(bytes.len() / 2);
    if let (Some(x), Some(y)) = (decoded(a, K::decode), decoded(b, K::decode)) {
        assert_eq!(x.cmp(&y), a.cmp(b), "{x:?} and {y:?}");
    }
    let Some(key) = decoded(bytes, K::decode) else {
        return false;
    };
    assert_eq!(key_bytes(&key), bytes, "{key:?} has two forms");
    true
}

fn native<T: NativeValue + Debug>(bytes: &[u8]) -> bool {
    let Some(value) = decoded(bytes, <Native as Codec<T>>::decode) else {
        return false;
    };
    let mut again = Vec::new();
    Native::encode(&value, &mut again).expect("native values encode");
    assert_eq!(again, bytes, "{value:?} has two forms");
    true
}

/// Serde values may have several forms, of which one is written.
fn serde<T: Serialize + DeserializeOwned + PartialEq + Debug>(bytes: &[u8]) -> bool {
    let Some(value) = decoded(bytes, <Postcard as Codec<T>>::decode) else {
        return false;
    };
    let mut form = Vec::new();
    Postcard::encode(&value, &mut form).expect("serde values encode");
    assert_eq!(
        <Postcard as Codec<T>>::decode(&form).expect("decodes"),
        value
    );
    true
}

/// Keys that are made of the input, not decoded from it, come back and keep their order.
fn check_made(bytes: &[u8]) {
    let mut input = Cursor::new(bytes);
    let (a, b) = (make(&mut input), make(&mut input));
    let (x, y) = (key_bytes(&a), key_bytes(&b));
    assert_eq!(a.cmp(&b), x.cmp(&y), "{a:?} and {b:?}");
    for (key, bytes) in [(a, x), (b, y)] {
        assert_eq!(Made::decode(&bytes).expect("a key decodes"), key);
        let mut value = Vec::new();
        Native::encode(&(key.0.clone(), key.1), &mut value).expect("native values encode");
        let again = <Native as Codec<(Vec<u8>, i64)>>::decode(&value);
        assert_eq!(again.expect("a value decodes"), (key.0, key.1));
    }
}

type Made = (Vec<u8>, i64, Option<String>, OrderedF64);

fn make(input: &mut Cursor<'_>) -> Made {
    let length = usize::from(input.byte_or_zero() % 8);
    let bytes = input.up_to(length).to_vec();
    let number = input.u64().unwrap_or(0).cast_signed();
    let length = usize::from(input.byte_or_zero() % 8);
    let text = String::from_utf8_lossy(input.up_to(length)).into_owned();
    let float = f64::from_bits(input.u64().unwrap_or(0));
    (
        bytes,
        number,
        (length > 0).then_some(text),
        OrderedF64(float),
    )
}
