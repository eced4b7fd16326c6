//! The one public error of the workspace.

use std::error::Error as StdError;
use std::fmt;

/// A result whose error is [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What a caller can do about an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The call is wrong and will fail again: fix the call.
    Invalid,
    /// A stated limit is exceeded; the context names the limit and the value found.
    Limit,
    /// This build, backend or format version cannot do that.
    Unsupported,
    /// Two things that must agree do not: hash id, codec, job, state kind. The context says
    /// what was expected and what was found.
    Mismatch,
    /// A named object or snapshot does not exist.
    NotFound,
    /// Stored bytes are damaged: restore an older snapshot, or ask for the fallback.
    Corrupt,
    /// A newer coordinator has claimed the job: stop, and do not claim again by yourself.
    Fenced,
    /// The outcome of a write is not known: retry the same call until it is.
    InDoubt,
    /// A snapshot was declined or aborted; the next one is not affected.
    Declined,
    /// The call did not take effect and may be retried as it is.
    Transient,
    /// The store is full, cannot be written to, or denies access. The call did not take effect:
    /// put that right, then call again.
    Refused,
    /// The work was cancelled before it ended.
    Cancelled,
    /// The store or backend has been closed.
    Closed,
}

impl ErrorKind {
    /// The kind in lower-case words, as it stands in messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Invalid => "invalid",
            Self::Limit => "limit exceeded",
            Self::Unsupported => "unsupported",
            Self::Mismatch => "mismatch",
            Self::NotFound => "not found",
            Self::Corrupt => "corrupt",
            Self::Fenced => "fenced",
            Self::InDoubt => "in doubt",
            Self::Declined => "declined",
            Self::Transient => "transient",
            Self::Refused => "refused",
            Self::Cancelled => "cancelled",
            Self::Closed => "closed",
        }
    }
}

/// An error: its kind, one sentence, the facts, and what caused it.
///
/// ```
/// use backend_core::{Error, ErrorKind};
/// let e = Error::new(ErrorKind::Corrupt, "block checksum differs")
///     .with("object", "segments/1-4-0-0-ab")
///     .expected_got("0x12345678", "0x12345679");
/// assert_eq!(
///     e.to_string(),
///     "corrupt: block checksum differs (object: segments/1-4-0-0-ab, expected: 0x12345678, got: 0x12345679)"
/// );
/// ```
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    message: &'static str,
    context: Vec<(&'static str, String)>,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl Error {
    /// An error of `kind` whose `message` says what is wrong, without a full stop.
    pub fn new(kind: ErrorKind, message: &'static str) -> Self {
        Self(Box::new(Inner {
            kind,
            message,
            context: Vec::new(),
            source: None,
        }))
    }

    /// Adds a fact.
    pub fn with(mut self, name: &'static str, value: impl fmt::Display) -> Self {
        self.0.context.push((name, value.to_string()));
        self
    }

    /// Adds what was expected and what was found.
    pub fn expected_got(self, expected: impl fmt::Display, got: impl fmt::Display) -> Self {
        self.with("expected", expected).with("got", got)
    }

    /// Adds the cause.
    pub fn because(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// What the caller can do.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The sentence without facts.
    pub fn message(&self) -> &'static str {
        self.0.message
    }

    /// The value of the fact called `name`, if the error carries it.
    pub fn fact(&self, name: &str) -> Option<&str> {
        self.0
            .context
            .iter()
            .find(|(n, _)| *n == name)
            .map(|(_, v)| v.as_str())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.kind.as_str(), self.0.message)?;
        for (i, (name, value)) in self.0.context.iter().enumerate() {
            write!(f, "{}{name}: {value}", if i == 0 { " (" } else { ", " })?;
        }
        if !self.0.context.is_empty() {
            f.write_str(")")?;
        }
        if let Some(source) = &self.0.source {
            write!(f, ": {source}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0
            .source
            .as_deref()
            .map(|s| s as &(dyn StdError + 'static))
    }
}
