//! `stateline demo`: daily active aircraft over real flights, with a crash and a rescale.

mod args;
mod directory;
mod job;
mod operators;
mod report;
mod source;
mod task;
#[cfg(test)]
mod tests;
mod verify;

use serde_json::json;
use stateline::Result;
use stateline::prelude::Storage;

use self::args::Course;
pub(crate) use self::args::DemoArguments;
use self::directory::Directory;
pub(crate) use self::job::JOB;
use self::job::Job;
use self::operators::Results;
use self::report::{Audience, Report};
use self::source::Source;

/// Runs the demo; whether its numbers are the expected ones.
///
/// # Errors
/// For arguments that make no sense, and those of the store.
pub(crate) fn run(arguments: &DemoArguments) -> Result<bool> {
    let source = Source::open()?;
    let course = arguments.course(source.len())?;
    let audience = match (arguments.json, arguments.check) {
        (true, _) => Audience::Machine,
        (false, true) => Audience::Script,
        (false, false) => Audience::Person,
    };
    let mut report = Report::new(audience, course.events);
    let directory = Directory::prepare(&arguments.dir)?;
    report.line(&format!(
        "Daily active aircraft: {} of {} flights of 2013, snapshots in {}{}",
        course.events,
        source.len(),
        arguments.dir.display(),
        if directory.was_emptied {
            " (emptied)"
        } else {
            ""
        },
    ));
    let storage = Storage::local(&arguments.dir)?;
    let results = drive(arguments, course, &storage, &source, &mut report)?;
    let (expected, origin) = verify::expected(&source, course.events)?;
    let differences = verify::differences(&results, &expected);
    show_days(&report, &results, &expected, origin.text());
    differences
        .iter()
        .take(20)
        .for_each(|line| report.difference(line));
    let numbers = expected.daily.len() + expected.carrier_daily.len() + expected.aircraft.len();
    let text = if differences.is_empty() {
        format!(
            "EQUAL: {} days, {} carrier-days, {} aircraft are just what {} gives",
            expected.daily.len(),
            expected.carrier_daily.len(),
            expected.aircraft.len(),
            origin.text()
        )
    } else {
        format!(
            "DIFFERENT: {} of {numbers} numbers are not what {} gives",
            differences.len(),
            origin.text()
        )
    };
    report.verdict(differences.is_empty(), &text);
    report.line(&format!(
        "Next: cargo run --release -p cli -- ls {}",
        arguments.dir.display()
    ));
    Ok(differences.is_empty())
}

/// Runs the job to its end, through a crash and a rescale in the order in which they come.
fn drive(
    arguments: &DemoArguments,
    course: Course,
    storage: &Storage,
    source: &Source,
    report: &mut Report,
) -> Result<Results> {
    let every = course.snapshot_every;
    let (mut job, begun) = Job::start(storage, arguments.tasks)?;
    report.recovery("start", arguments.tasks, &begun);
    let mut tasks = arguments.tasks;
    if course.crash_at > course.rescale_at {
        job.run(source, course.rescale_at, every, report)?;
        tasks = rescale(&mut job, arguments.rescale_to, report)?;
    }
    job.run(source, course.crash_at, every, report)?;
    job.crash();
    report.line(&format!(
        "  crash before event {}: all memory is lost",
        course.crash_at
    ));
    report.record(&json!({"kind": "crash", "position": course.crash_at}));
    let (mut job, recovered) = Job::start(storage, tasks)?;
    report.recovery("recovery", tasks, &recovered);
    if course.crash_at <= course.rescale_at {
        job.run(source, course.rescale_at, every, report)?;
        rescale(&mut job, arguments.rescale_to, report)?;
    }
    job.run(source, course.events, every, report)?;
    job.finish(report)
}

fn rescale(job: &mut Job, tasks: u32, report: &mut Report) -> Result<u32> {
    let recovery = job.rescale(tasks, report)?;
    report.recovery("rescale", tasks, &recovery);
    Ok(tasks)
}

/// The first and the last days beside the expected numbers.
fn show_days(report: &Report, found: &Results, expected: &Results, origin: &str) {
    const DAYS: usize = 3;
    report.line(&format!(
        "\n  {:<12}{:>8}{:>10}    {origin}: {:>8}{:>10}",
        "day", "active", "flights", "active", "flights"
    ));
    let count = expected.daily.len();
    for (index, (day, (active, flights))) in expected.daily.iter().enumerate() {
        if index == DAYS && count > 2 * DAYS {
            report.line("  ..");
        }
        if index < DAYS || index + DAYS >= count {
            let (got, got_flights) = found.daily.get(day).copied().unwrap_or_default();
            let indent = origin.len() + 2;
            report.line(&format!(
                "  {day:<12}{got:>8}{got_flights:>10}    {:indent$}{active:>8}{flights:>10}",
                ""
            ));
            report.record(&json!({
                "kind": "day", "day": day, "active": got, "flights": got_flights,
                "expected_active": active, "expected_flights": flights,
            }));
        }
    }
    report.line("");
}
