//! What a state is: its name, kind, codecs and schema, as manifests hold them.

use std::fmt;

use xxhash_rust::xxh3::xxh3_64;

use crate::error::{Error, ErrorKind, Result};
use crate::limits::NAME_BYTES_MAX;

/// A state of one open store: an index that [`crate::KeyedStore::register`] gives. It means
/// nothing outside that store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StateId(pub u32);

/// The bit of a uid that says that the state is one of timers.
const TIMERS_BIT: u32 = 1 << 31;

/// A state in stored bytes: the low 31 bits of XXH3-64 of its name, so that tasks agree without
/// asking, and in the highest bit whether it is one of timers. Two names of one operator with
/// equal uids are refused at registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StateUid(pub u32);

impl StateUid {
    /// The uid of the state `name` of `kind`.
    pub fn of(name: &str, kind: StateKind) -> Self {
        let hash = xxh3_64(name.as_bytes()) as u32 & !TIMERS_BIT;
        match kind {
            StateKind::Timers => Self(hash | TIMERS_BIT),
            StateKind::Value | StateKind::List | StateKind::Map => Self(hash),
        }
    }

    /// Whether entries of the state are timers: ordered by time, and owned by the key that stands
    /// in place of the namespace.
    #[inline]
    pub const fn is_timers(self) -> bool {
        self.0 & TIMERS_BIT != 0
    }
}

/// The version of a state's value schema, counted by its user from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SchemaVersion(pub u32);

/// How values of one type become bytes, by name, for example `u64` or `(u64,utf8)`.
///
/// It is stored, and compared when a state is registered after a restore.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CodecId(Box<str>);

impl CodecId {
    /// The id `name`.
    pub fn new(name: impl Into<Box<str>>) -> Self {
        Self(name.into())
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for CodecId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for CodecId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The kind of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StateKind {
    /// One value a key.
    Value,
    /// A list a key, in the order of its appends.
    List,
    /// A map a key, ordered by its encoded user keys.
    Map,
    /// Timers of all keys, ordered by time.
    Timers,
}

impl StateKind {
    /// The byte that stands for the kind in stored bytes.
    pub const fn to_wire(self) -> u8 {
        match self {
            Self::Value => 1,
            Self::List => 2,
            Self::Map => 3,
            Self::Timers => 4,
        }
    }

    /// The kind that a stored byte stands for.
    pub const fn from_wire(byte: u8) -> Option<Self> {
        match byte {
            1 => Some(Self::Value),
            2 => Some(Self::List),
            3 => Some(Self::Map),
            4 => Some(Self::Timers),
            _ => None,
        }
    }
}

impl fmt::Display for StateKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Value => "value",
            Self::List => "list",
            Self::Map => "map",
            Self::Timers => "timers",
        })
    }
}

/// When a state's entries expire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct TimeToLive {
    /// How long an entry lives after its last refresh, in milliseconds; above 0.
    pub ttl_ms: u64,
    /// Whether reads refresh, too.
    pub refresh_on_read: bool,
    /// Whether an expired entry may still be returned until it is removed: by the read that meets
    /// it, by a sweep, by a merge.
    pub returns_expired: bool,
    /// A read moves the expiry only if it moves by so much, in milliseconds: else a state that is
    /// read often would be written into every increment. 0: every read does.
    pub refresh_ms_min: u64,
    /// Whether entries that were written before the state had a time to live get one when it is
    /// registered with it; else they live until they are written, and on.
    pub covers_old: bool,
}

impl TimeToLive {
    /// Entries live for `ttl_ms` after each write and are never returned afterwards.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] if `ttl_ms` is 0.
    pub fn after_write_ms(ttl_ms: u64) -> Result<Self> {
        if ttl_ms == 0 {
            return Err(Error::new(
                ErrorKind::Invalid,
                "a time to live is above 0 ms",
            ));
        }
        Ok(Self {
            ttl_ms,
            refresh_on_read: false,
            returns_expired: false,
            refresh_ms_min: 0,
            covers_old: false,
        })
    }

    /// Reads refresh, too, if the expiry then moves by `refresh_ms_min` or more.
    pub fn refreshed_by_reads(mut self, refresh_ms_min: u64) -> Self {
        self.refresh_on_read = true;
        self.refresh_ms_min = refresh_ms_min;
        self
    }

    /// What has expired is returned until it is removed.
    pub fn shown_until_removed(mut self) -> Self {
        self.returns_expired = true;
        self
    }

    /// Entries that are older than the time to live itself live from its registration on.
    pub fn covering_old_entries(mut self) -> Self {
        self.covers_old = true;
        self
    }
}

/// All that is stored about a state besides its entries.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StateDescriptor {
    /// The name, unique in its operator, at most [`NAME_BYTES_MAX`] bytes.
    pub name: String,
    /// The kind.
    pub kind: StateKind,
    /// How values, list elements or map values are encoded.
    pub value_codec: CodecId,
    /// How user keys of a map are encoded.
    pub sub_key_codec: Option<CodecId>,
    /// How namespaces are encoded; `None` if the state has none.
    pub namespace_codec: Option<CodecId>,
    /// The version of the value schema that new writes have.
    pub schema: SchemaVersion,
    /// When entries expire; `None` if never.
    pub ttl: Option<TimeToLive>,
}

impl StateDescriptor {
    /// A state of one value a key.
    pub fn value(name: impl Into<String>, value_codec: CodecId) -> Self {
        Self::new(name.into(), StateKind::Value, value_codec, None)
    }

    /// A state of a list a key.
    pub fn list(name: impl Into<String>, element_codec: CodecId) -> Self {
        Self::new(name.into(), StateKind::List, element_codec, None)
    }

    /// A state of a map a key.
    pub fn map(name: impl Into<String>, sub_key_codec: CodecId, value_codec: CodecId) -> Self {
        Self::new(
            name.into(),
            StateKind::Map,
            value_codec,
            Some(sub_key_codec),
        )
    }

    /// A state of timers.
    pub fn timers(name: impl Into<String>) -> Self {
        Self::new(name.into(), StateKind::Timers, CodecId::new("timer"), None)
    }

    fn new(
        name: String,
        kind: StateKind,
        value_codec: CodecId,
        sub_key_codec: Option<CodecId>,
    ) -> Self {
        Self {
            name,
            kind,
            value_codec,
            sub_key_codec,
            namespace_codec: None,
            schema: SchemaVersion(0),
            ttl: None,
        }
    }

    /// The same state with namespaces.
    pub fn with_namespace(mut self, codec: CodecId) -> Self {
        self.namespace_codec = Some(codec);
        self
    }

    /// The same state with another schema version.
    pub fn with_schema(mut self, schema: SchemaVersion) -> Self {
        self.schema = schema;
        self
    }

    /// The state's id in stored bytes.
    pub fn uid(&self) -> StateUid {
        StateUid::of(&self.name, self.kind)
    }

    /// Whether the descriptor can be stored.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] if the name is empty, or timers have a time to live;
    /// [`ErrorKind::Limit`] if the name is too long.
    pub fn validate(&self) -> Result<()> {
        if self.kind == StateKind::Timers && self.ttl.is_some() {
            return Err(
                Error::new(ErrorKind::Invalid, "timers have no time to live")
                    .with("state", &self.name),
            );
        }
        if self.name.is_empty() {
            return Err(Error::new(ErrorKind::Invalid, "a state has a name"));
        }
        if self.name.len() > NAME_BYTES_MAX {
            return Err(Error::new(ErrorKind::Limit, "a state's name is too long")
                .with("bytes_max", NAME_BYTES_MAX)
                .with("got", self.name.len()));
        }
        Ok(())
    }

    /// Whether entries written under `self` can be read and written under `wanted` as they are.
    ///
    /// # Errors
    /// [`ErrorKind::Mismatch`] that names the field, what was stored and what was asked for.
    pub fn check_compatible(&self, wanted: &Self) -> Result<()> {
        let show =
            |id: &Option<CodecId>| id.as_ref().map_or("none".to_owned(), ToString::to_string);
        let differs = |field: &'static str, stored: String, asked: String| {
            Error::new(
                ErrorKind::Mismatch,
                "a state was stored under another descriptor",
            )
            .with("state", &self.name)
            .with("field", field)
            .expected_got(stored, asked)
        };
        if self.kind != wanted.kind {
            return Err(differs(
                "kind",
                self.kind.to_string(),
                wanted.kind.to_string(),
            ));
        }
        let codecs = [
            (
                "value codec",
                Some(self.value_codec.clone()),
                Some(wanted.value_codec.clone()),
            ),
            (
                "sub-key codec",
                self.sub_key_codec.clone(),
                wanted.sub_key_codec.clone(),
            ),
            (
                "namespace codec",
                self.namespace_codec.clone(),
                wanted.namespace_codec.clone(),
            ),
        ];
        for (field, stored, asked) in codecs {
            if stored != asked {
                return Err(differs(field, show(&stored), show(&asked)));
            }
        }
        if self.schema != wanted.schema {
            return Err(differs(
                "schema",
                self.schema.0.to_string(),
                wanted.schema.0.to_string(),
            ));
        }
        Ok(())
    }
}
