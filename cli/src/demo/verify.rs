//! The job's numbers beside those that SQL gave, or beside a plain count of fewer events.

use std::collections::{BTreeMap, BTreeSet};

use stateline::{Error, ErrorKind, Result};

use crate::demo::operators::Results;
use crate::demo::source::Source;

const DAILY: &str = include_str!("../../../data/daily-active-aircraft.csv");
const CARRIER_DAILY: &str = include_str!("../../../data/daily-active-aircraft-by-carrier.csv");
const AIRCRAFT: &str = include_str!("../../../data/aircraft-totals.csv");

/// Where the expected numbers come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The files that SQL wrote.
    Sql,
    /// Sets and sums over the events in one loop, for a part of the flights.
    PlainCount,
}

impl Origin {
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Sql => "SQL",
            Self::PlainCount => "a plain count",
        }
    }
}

/// The numbers that the job must come to after `events` events.
///
/// # Errors
/// [`ErrorKind::Corrupt`] if a file of answers cannot be read.
pub(crate) fn expected(source: &Source, events: u64) -> Result<(Results, Origin)> {
    if events == source.len() {
        return sql_answers().map(|results| (results, Origin::Sql));
    }
    let mut daily: BTreeMap<String, (BTreeSet<&str>, u64)> = BTreeMap::new();
    let mut carrier_daily: BTreeMap<(String, String), BTreeSet<&str>> = BTreeMap::new();
    let mut results = Results::default();
    for flight in (0..events).filter_map(|position| source.at(position)) {
        let day = daily.entry(flight.date.clone()).or_default();
        day.1 += 1;
        if flight.aircraft.is_empty() {
            continue;
        }
        day.0.insert(&flight.aircraft);
        let pair = (flight.date.clone(), flight.carrier.clone());
        carrier_daily
            .entry(pair)
            .or_default()
            .insert(&flight.aircraft);
        let totals = results.aircraft.entry(flight.aircraft.clone()).or_default();
        *totals = (totals.0 + 1, totals.1 + flight.distance_mi);
    }
    results.daily = daily
        .into_iter()
        .map(|(d, (set, n))| (d, (set.len() as u64, n)))
        .collect();
    results.carrier_daily = carrier_daily
        .into_iter()
        .map(|(pair, set)| (pair, set.len() as u64))
        .collect();
    Ok((results, Origin::PlainCount))
}

fn sql_answers() -> Result<Results> {
    let mut results = Results::default();
    for row in rows("daily-active-aircraft.csv", DAILY)? {
        let [day, active, flights] = fields(&row)?;
        results
            .daily
            .insert(day.to_owned(), (number(active)?, number(flights)?));
    }
    for row in rows("daily-active-aircraft-by-carrier.csv", CARRIER_DAILY)? {
        let [day, carrier, active] = fields(&row)?;
        results
            .carrier_daily
            .insert((day.to_owned(), carrier.to_owned()), number(active)?);
    }
    for row in rows("aircraft-totals.csv", AIRCRAFT)? {
        let [aircraft, flights, miles] = fields(&row)?;
        results
            .aircraft
            .insert(aircraft.to_owned(), (number(flights)?, number(miles)?));
    }
    Ok(results)
}

fn rows(file: &'static str, text: &str) -> Result<Vec<csv::StringRecord>> {
    let rows: Result<Vec<_>, _> = csv::Reader::from_reader(text.as_bytes())
        .records()
        .collect();
    rows.map_err(|e| bad_answers().with("file", file).because(e))
}

fn fields<const N: usize>(row: &csv::StringRecord) -> Result<[&str; N]> {
    let fields: Vec<&str> = row.iter().collect();
    let got = fields.len();
    fields
        .try_into()
        .map_err(|_| bad_answers().expected_got(N, got))
}

fn number(text: &str) -> Result<u64> {
    text.parse()
        .map_err(|_| bad_answers().expected_got("a number", text))
}

fn bad_answers() -> Error {
    Error::new(ErrorKind::Corrupt, "a file of answers cannot be read")
}

/// What differs between the job's numbers and the expected ones, as lines; empty if nothing.
pub(crate) fn differences(found: &Results, expected: &Results) -> Vec<String> {
    let mut lines = Vec::new();
    compare("daily", &found.daily, &expected.daily, &mut lines);
    compare(
        "carrier-daily",
        &found.carrier_daily,
        &expected.carrier_daily,
        &mut lines,
    );
    compare("aircraft", &found.aircraft, &expected.aircraft, &mut lines);
    lines
}

fn compare<K: Ord + std::fmt::Debug, V: PartialEq + std::fmt::Debug>(
    table: &str,
    found: &BTreeMap<K, V>,
    expected: &BTreeMap<K, V>,
    lines: &mut Vec<String>,
) {
    let keys: BTreeSet<&K> = found.keys().chain(expected.keys()).collect();
    for key in keys {
        let (got, wanted) = (found.get(key), expected.get(key));
        if got != wanted {
            lines.push(format!("{table} {key:?}: expected {wanted:?}, got {got:?}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sql_and_the_plain_count_agree_on_all_flights() {
        let source = Source::open().expect("the flights are whole");
        assert_eq!(source.len(), 336_776);
        let (sql, origin) = expected(&source, source.len()).expect("the answers are whole");
        assert_eq!(origin, Origin::Sql);
        assert_eq!(
            (sql.daily.len(), sql.carrier_daily.len(), sql.aircraft.len()),
            (365, 5_432, 4_043)
        );
        let (almost, origin) = expected(&source, source.len() - 1).expect("it counts");
        assert_eq!(origin, Origin::PlainCount);
        let lines = differences(&almost, &sql);
        assert!(
            (1..=3).contains(&lines.len()),
            "one flight makes at most three numbers: {lines:?}"
        );
    }

    #[test]
    fn each_wrong_number_is_a_line() {
        let source = Source::open().expect("the flights are whole");
        let (right, _) = expected(&source, 1_000).expect("it counts");
        let mut wrong = right.clone();
        assert!(differences(&wrong, &right).is_empty());
        wrong.daily.values_mut().for_each(|numbers| numbers.0 += 1);
        assert_eq!(differences(&wrong, &right).len(), right.daily.len());
        wrong.aircraft.clear();
        let missing = right.daily.len() + right.aircraft.len();
        assert_eq!(differences(&wrong, &right).len(), missing);
    }
}
