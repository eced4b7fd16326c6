//! The flights, as a source that can be rewound to any position.

use serde::Deserialize;
use stateline::{Error, ErrorKind, Result};

/// The flights of 2013, compressed.
const FLIGHTS: &[u8] = include_bytes!("../../../data/flights-2013.csv.zst");

/// One flight; the columns that the demo does not use are left out.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub(crate) struct Flight {
    /// The day of its departure.
    pub(crate) date: String,
    pub(crate) carrier: String,
    /// The tail number; empty if it is not known.
    pub(crate) aircraft: String,
    pub(crate) distance_mi: u64,
}

/// All flights in the order of their departure: a position is an index.
#[derive(Debug)]
pub(crate) struct Source(Vec<Flight>);

impl Source {
    /// Reads the flights that come with the project.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`] if the file is damaged.
    pub(crate) fn open() -> Result<Self> {
        let damaged = |e| {
            Error::new(ErrorKind::Corrupt, "the flights cannot be read")
                .with("file", "data/flights-2013.csv.zst")
                .because(e)
        };
        let text = zstd::decode_all(FLIGHTS).map_err(|e| damaged(e.to_string()))?;
        let mut reader = csv::Reader::from_reader(&text[..]);
        let flights: Result<Vec<Flight>, _> = reader.deserialize().collect();
        flights.map(Self).map_err(|e| damaged(e.to_string()))
    }

    /// The number of flights.
    pub(crate) fn len(&self) -> u64 {
        self.0.len() as u64
    }

    /// The flight at `position`.
    pub(crate) fn at(&self, position: u64) -> Option<&Flight> {
        usize::try_from(position)
            .ok()
            .and_then(|index| self.0.get(index))
    }
}
