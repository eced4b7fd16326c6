use std::fmt::Debug;

use bytes::Bytes;
use proptest::prelude::*;
use serde::{Deserialize, Serialize};

use crate::codec::{
    ByteSink, Codec, KeyCodec, Native, NativeValue, OrderedF64, Postcard, decode_error,
};
use crate::descriptor::CodecId;
use crate::error::{ErrorKind, Result};

fn value_bytes<C: Codec<T>, T>(value: &T) -> Vec<u8> {
    let mut out = Vec::new();
    C::encode(value, &mut out).expect("encodes");
    C::with_encoded(value, |bytes| {
        assert_eq!(bytes, out, "both ways to encode agree");
        Ok(())
    })
    .expect("encodes");
    out
}

fn key_bytes<K: KeyCodec + ?Sized>(key: &K) -> Vec<u8> {
    let mut out = Vec::new();
    key.encode(&mut out);
    key.with_encoded(|bytes| assert_eq!(bytes, out, "both ways to encode agree"));
    out
}

fn nested_bytes<K: KeyCodec>(key: &K) -> Vec<u8> {
    let mut out = Vec::new();
    key.encode_nested(&mut out);
    out
}

/// A native value survives, alone and delimited, and any cut or longer form is refused.
fn check_value<T: NativeValue + PartialEq + Debug>(value: &T) {
    let bytes = value_bytes::<Native, T>(value);
    assert_eq!(
        &<Native as Codec<T>>::decode(&bytes).expect("decodes"),
        value
    );
    let mut delimited = Vec::new();
    value.write_delimited(&mut delimited);
    for cut in 0..delimited.len() {
        let mut input = &delimited[..cut];
        assert!(T::read_delimited(&mut input).is_err(), "cut at {cut}");
    }
    delimited.extend_from_slice(b"rest");
    let mut input = &delimited[..];
    assert_eq!(&T::read_delimited(&mut input).expect("decodes"), value);
    assert_eq!(input, b"rest");
}

/// Whatever is accepted is what the encoder writes, and nothing panics.
fn check_value_canonical<T: NativeValue>(bytes: &[u8]) {
    if let Ok(value) = T::read(bytes) {
        assert_eq!(value_bytes::<Native, T>(&value), bytes);
    }
    let mut input = bytes;
    if let Ok(value) = T::read_delimited(&mut input) {
        let mut out = Vec::new();
        value.write_delimited(&mut out);
        assert_eq!(out, bytes[..bytes.len() - input.len()]);
    }
}

/// Keys survive, and their bytes, alone and nested, have their order; no nested form begins with
/// another.
fn check_keys<K: KeyCodec<Owned = K> + Ord + Debug>(a: &K, b: &K) {
    for key in [a, b] {
        assert_eq!(&K::decode(&key_bytes(key)).expect("decodes"), key);
        let mut nested = nested_bytes(key);
        nested.push(0xff);
        let mut input = &nested[..];
        assert_eq!(&K::decode_nested(&mut input).expect("decodes"), key);
        assert_eq!(input, [0xff]);
    }
    assert_eq!(key_bytes(a).cmp(&key_bytes(b)), a.cmp(b), "{a:?} and {b:?}");
    let (nested_a, nested_b) = (nested_bytes(a), nested_bytes(b));
    assert_eq!(nested_a.cmp(&nested_b), a.cmp(b), "{a:?} and {b:?}");
    assert!(
        a == b || !nested_b.starts_with(&nested_a),
        "{a:?} and {b:?}"
    );
}

fn check_key_canonical<K: KeyCodec<Owned = K>>(bytes: &[u8]) {
    if let Ok(key) = K::decode(bytes) {
        assert_eq!(key_bytes(&key), bytes);
    }
    let mut input = bytes;
    if let Ok(key) = K::decode_nested(&mut input) {
        assert_eq!(nested_bytes(&key), bytes[..bytes.len() - input.len()]);
    }
}

/// Few and extreme byte values, so that prefixes, zeros and `ff` meet often.
fn tricky_bytes() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![Just(0), Just(1), Just(0xfe), Just(0xff), any::<u8>()];
    prop::collection::vec(byte, 0..6)
}

fn tricky_text() -> impl Strategy<Value = String> {
    let letter = prop_oneof![Just('\0'), Just('\u{1}'), Just('a'), any::<char>()];
    prop::collection::vec(letter, 0..6).prop_map(String::from_iter)
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Account {
    House,
    Customer(String),
}

impl KeyCodec for Account {
    type Owned = Self;

    fn id() -> CodecId {
        CodecId::new("account")
    }

    fn encode<S: ByteSink>(&self, out: &mut S) {
        match self {
            Self::House => out.push_bytes(&[0]),
            Self::Customer(name) => {
                out.push_bytes(&[1]);
                name.encode(out);
            }
        }
    }

    fn decode(bytes: &[u8]) -> Result<Self> {
        match bytes {
            [0] => Ok(Self::House),
            [1, name @ ..] => String::decode(name).map(Self::Customer),
            _ => Err(decode_error("account", "a variant", bytes.escape_ascii())),
        }
    }
}

fn account() -> impl Strategy<Value = Account> {
    prop_oneof![
        Just(Account::House),
        tricky_text().prop_map(Account::Customer)
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn native_numbers_survive(
        a: u8, b: u16, c: u32, d: u64, e: u128, f: i8, g: i16, h: i32, i: i64, j: i128,
        rest: (bool, char),
    ) {
        check_value(&(a, b, c, d, e, rest.0));
        check_value(&(f, g, h, i, j, rest.1));
        check_value(&[d, d ^ 1]);
        check_value(&([f; 40], [j; 3], [rest.0, true]));
        check_value(&i);
    }

    #[test]
    fn native_floats_keep_their_bits(bits: (u32, u64)) {
        let bytes = value_bytes::<Native, _>(&f64::from_bits(bits.1));
        prop_assert_eq!(&bytes[..], bits.1.to_le_bytes());
        let back = <Native as Codec<(f32, f64)>>::decode(&value_bytes::<Native, _>(&(
            f32::from_bits(bits.0),
            f64::from_bits(bits.1),
        ))).expect("decodes");
        prop_assert_eq!((back.0.to_bits(), back.1.to_bits()), bits);
    }

    #[test]
    fn native_text_and_compounds_survive(
        text in tricky_text(),
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        number: Option<u32>,
    ) {
        let shared = Bytes::from(bytes.clone());
        check_value(&text);
        check_value(&bytes);
        check_value(&((text.clone(), shared.clone()), Some(bytes.clone()), number));
        check_value(&[text.clone(), String::new(), text]);
        check_value(&(bytes, (), Some(Some(shared))));
    }

    #[test]
    fn native_decoders_accept_only_what_is_written(bytes in tricky_bytes()) {
        check_value_canonical::<bool>(&bytes);
        check_value_canonical::<char>(&bytes);
        check_value_canonical::<()>(&bytes);
        check_value_canonical::<String>(&bytes);
        check_value_canonical::<Option<Option<u8>>>(&bytes);
        check_value_canonical::<[Vec<u8>; 2]>(&bytes);
        check_value_canonical::<[i16; 2]>(&bytes);
        check_value_canonical::<(Vec<u8>, String, Option<bool>)>(&bytes);
        let _ = <Postcard as Codec<(Vec<u64>, Option<String>)>>::decode(&bytes);
    }

    #[test]
    fn number_keys_keep_order(
        a: (u8, u16, u32, u64, u128, bool), b: (u8, u16, u32, u64, u128, bool),
        c: (i8, i16, i32, i64, i128, char), d: (i8, i16, i32, i64, i128, char),
        e: f64, f: f64,
    ) {
        check_keys(&a, &b);
        check_keys(&c, &d);
        check_keys(&a.3, &b.3);
        check_keys(&c.0, &d.0);
        check_keys(&c.4, &d.4);
        check_keys(&OrderedF64(e), &OrderedF64(f));
        check_keys(&a.3.to_be_bytes(), &b.3.to_be_bytes());
    }

    #[test]
    fn text_keys_keep_order(
        a in (tricky_text(), tricky_text()), b in (tricky_text(), tricky_text()),
    ) {
        check_keys(&a.0, &b.0);
        check_keys(&a, &b);
        check_keys(&(a.0.clone(), a.clone(), 1u8), &(a.0.clone(), b.clone(), 1u8));
        check_keys(&Some(a.1), &Some(b.1));
    }

    #[test]
    fn byte_keys_keep_order(
        a in (tricky_bytes(), any::<Option<i8>>(), tricky_bytes()),
        b in (tricky_bytes(), any::<Option<i8>>(), tricky_bytes()),
    ) {
        check_keys(&a.0, &b.0);
        check_keys(&a, &b);
        check_keys(&(Bytes::from(a.0), ()), &(Bytes::from(b.0), ()));
        check_keys(&Some(a.1), &Some(b.1));
        check_keys(&(a.1, a.2), &(b.1, b.2));
    }

    #[test]
    fn a_users_key_keeps_order_in_tuples(
        a in (account(), any::<u8>(), account()), b in (account(), any::<u8>(), account()),
    ) {
        check_keys(&a, &b);
        check_keys(&(a.0, a.1), &(b.0, b.1));
    }

    #[test]
    fn key_decoders_accept_only_what_is_written(bytes in tricky_bytes()) {
        check_key_canonical::<bool>(&bytes);
        check_key_canonical::<i16>(&bytes);
        check_key_canonical::<char>(&bytes);
        check_key_canonical::<()>(&bytes);
        check_key_canonical::<String>(&bytes);
        check_key_canonical::<[u8; 3]>(&bytes);
        check_key_canonical::<Option<Vec<u8>>>(&bytes);
        check_key_canonical::<(Vec<u8>, Option<Bytes>, String)>(&bytes);
        check_key_canonical::<(Account, u8)>(&bytes);
    }
}

#[test]
fn extreme_keys_keep_order() {
    let floats = [
        f64::NEG_INFINITY,
        -1.0,
        -f64::MIN_POSITIVE,
        -0.0,
        0.0,
        1e-310,
        1.0,
        f64::INFINITY,
        f64::NAN,
    ];
    for pair in floats.windows(2) {
        assert!(key_bytes(&OrderedF64(pair[0])) < key_bytes(&OrderedF64(pair[1])));
    }
    for pair in [i64::MIN, -1, 0, 1, i64::MAX].windows(2) {
        assert!(key_bytes(&pair[0]) < key_bytes(&pair[1]));
    }
    assert!(key_bytes(&None::<u8>) < key_bytes(&Some(0u8)));
    assert!(key_bytes(&("a", "\u{10ffff}")) < key_bytes(&("a\0", "")));
}

#[test]
fn encodings_are_as_documented() {
    assert_eq!(key_bytes(&0x0102u16), [1, 2]);
    assert_eq!(key_bytes(&-1i16), [0x7f, 0xff]);
    assert_eq!(key_bytes("ab"), b"ab");
    assert_eq!(key_bytes(&("a\0", "b\0")), b"a\x00\xff\x00\x00b\x00");
    assert_eq!(key_bytes(&("ab".to_owned(), 1u8)), key_bytes(&("ab", 1u8)));
    assert_eq!(value_bytes::<Native, _>(&0x0102u16), [2, 1]);
    assert_eq!(
        value_bytes::<Native, _>(&(vec![7u8; 200], Some('a'))),
        [&[0xc8, 1][..], &[7; 200], &[1, 0x61, 0, 0, 0]].concat()
    );
}

#[test]
fn ids_are_composed() {
    assert_eq!(<(u64, &str)>::id().as_str(), "(u64,utf8)");
    assert_eq!(
        <(Option<[u8; 16]>, Vec<u8>)>::id().as_str(),
        "(option([u8;16]),bytes)"
    );
    let id = <Native as Codec<(Option<u32>, [String; 2], ())>>::id();
    assert_eq!(id.as_str(), "(option(u32),[utf8;2],())");
    assert_eq!(
        <Native as Codec<Bytes>>::id(),
        <Native as Codec<Vec<u8>>>::id()
    );
}

#[test]
fn errors_say_codec_expected_and_got() {
    let error = <Native as Codec<u64>>::decode(&[1, 2]).expect_err("too short");
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert_eq!(error.fact("codec"), Some("u64"));
    assert_eq!(error.fact("expected"), Some("8 bytes"));
    assert_eq!(error.fact("got"), Some("2 bytes"));

    let error = <(bool, u8)>::decode(&[2, 2]).expect_err("no bool");
    assert_eq!(error.fact("codec"), Some("bool"));
    assert_eq!(error.fact("within"), Some("(bool,u8)"));
    let error = String::decode(b"a\xff").expect_err("no text");
    assert_eq!(error.fact("got"), Some("1 bytes of it"));
}

#[test]
fn a_length_beyond_the_input_allocates_nothing() {
    let huge = [
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 1,
    ];
    let error = <Native as Codec<(Vec<u8>, u8)>>::decode(&huge).expect_err("too long");
    assert_eq!(error.fact("expected"), Some("18446744073709551615 bytes"));
    let overlong = [0x81, 0x00, 7, 7];
    assert!(<Native as Codec<(Vec<u8>, u8)>>::decode(&overlong).is_err());
    let beyond_64_bits = [
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02, 1,
    ];
    assert!(<Native as Codec<(Vec<u8>, u8)>>::decode(&beyond_64_bits).is_err());
}

#[test]
fn an_encoding_outgrows_the_stack_anywhere() {
    for head in 0..140 {
        let value = (vec![1u8; head], vec![2u8; 70], 3u128, vec![4u8; 5]);
        check_value(&value);
        let key = ("a".repeat(head), 3u128, "b".repeat(70 - head / 2));
        assert_eq!(
            <(String, u128, String)>::decode(&key_bytes(&key)).expect("decodes"),
            key
        );
    }
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Order {
    id: u64,
    lines: Vec<(String, u32)>,
}

#[test]
fn postcard_takes_the_whole_input() {
    let order = Order {
        id: 300,
        lines: vec![("x".repeat(100), 2)],
    };
    let mut bytes = value_bytes::<Postcard, _>(&order);
    assert_eq!(
        <Postcard as Codec<Order>>::decode(&bytes).expect("decodes"),
        order
    );
    for cut in 0..bytes.len() {
        assert!(<Postcard as Codec<Order>>::decode(&bytes[..cut]).is_err());
    }
    bytes.push(0);
    let error = <Postcard as Codec<Order>>::decode(&bytes).expect_err("a byte too many");
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert_eq!(error.fact("codec"), Some("postcard"));
    assert_eq!(error.fact("got"), Some("1 bytes more"));
}
