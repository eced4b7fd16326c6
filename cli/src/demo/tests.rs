//! The job comes to the right numbers wherever it crashes and however it is rescaled.

use super::*;

fn arguments(dir: &std::path::Path) -> DemoArguments {
    DemoArguments {
        events: None,
        dir: dir.to_owned(),
        snapshot_every: 500,
        seed: 1,
        crash_at: None,
        tasks: 4,
        rescale_to: 7,
        json: false,
        check: true,
    }
}

/// Starts where an earlier run left off, with `tasks` tasks.
fn start(storage: &Storage, tasks: u32) -> (Job, u64) {
    let (job, recovery) = Job::start(storage, tasks).expect("the job starts");
    (job, recovery.position)
}

fn assert_equal(arguments: &DemoArguments, what: &str) {
    let source = Source::open().expect("the flights are whole");
    let course = arguments
        .course(source.len())
        .expect("the arguments make sense");
    let storage = Storage::local(&arguments.dir).expect("the directory can be used");
    let mut report = Report::new(Audience::Script, course.events);
    let results = drive(arguments, course, &storage, &source, &mut report).expect(what);
    let (expected, _) = verify::expected(&source, course.events).expect("the answers are whole");
    let differences = verify::differences(&results, &expected);
    assert!(differences.is_empty(), "{what}: {differences:?}");
}

#[test]
fn numbers_are_right_after_a_crash_at_any_of_50_events() {
    let events = 6_000;
    for point in 0..50 {
        let dir = tempfile::tempdir().expect("a directory");
        let crash_at = point * events / 49;
        let arguments = DemoArguments {
            events: Some(events),
            crash_at: Some(crash_at),
            ..arguments(dir.path())
        };
        assert_equal(&arguments, &format!("crash before event {crash_at}"));
    }
}

#[test]
fn crash_is_recovered_from_and_not_begun_anew() {
    let dir = tempfile::tempdir().expect("a directory");
    let storage = Storage::local(dir.path()).expect("the directory can be used");
    let source = Source::open().expect("the flights are whole");
    let mut report = Report::new(Audience::Script, 6_000);
    let mut expected_at_least = 0;
    for crash_at in [1_200, 2_999, 4_500, 6_000] {
        let (mut job, position) = start(&storage, 4);
        // With a snapshot every 100 events and two of them under way at most.
        assert!(
            position >= expected_at_least,
            "{position} {expected_at_least}"
        );
        assert!(position % 100 == 0, "{position}");
        job.run(&source, crash_at, 100, &mut report)
            .expect("it runs");
        job.crash();
        expected_at_least = crash_at - 400;
    }
}

#[test]
fn numbers_are_right_with_snapshots_on_top_of_each_other() {
    let dir = tempfile::tempdir().expect("a directory");
    let arguments = DemoArguments {
        events: Some(10_000),
        snapshot_every: 50,
        ..arguments(dir.path())
    };
    assert_equal(&arguments, "a snapshot every 50 events");
}

#[test]
fn coordinator_that_was_overtaken_says_so() {
    let dir = tempfile::tempdir().expect("a directory");
    let storage = Storage::local(dir.path()).expect("the directory can be used");
    let source = Source::open().expect("the flights are whole");
    let mut report = Report::new(Audience::Script, 6_000);
    let (mut first, _) = start(&storage, 2);
    first
        .run(&source, 2_000, 500, &mut report)
        .expect("it leads");
    let (second, position) = start(&storage, 2);
    assert!(position >= 500, "{position}");
    let e = first
        .run(&source, 4_000, 500, &mut report)
        .and_then(|()| first.finish(&mut report).map(|_| ()))
        .expect_err("its next commit fails");
    assert_eq!(e.kind(), stateline::ErrorKind::Fenced, "{e}");
    assert!(e.fact("fenced_by").is_some(), "{e}");
    second.crash();
}

#[test]
fn numbers_are_right_after_5_rescales() {
    for (tasks, rescale_to) in [(4, 7), (7, 4), (1, 8), (8, 1), (3, 3)] {
        let dir = tempfile::tempdir().expect("a directory");
        let arguments = DemoArguments {
            events: Some(8_000),
            tasks,
            rescale_to,
            ..arguments(dir.path())
        };
        assert_equal(&arguments, &format!("from {tasks} to {rescale_to} tasks"));
    }
}

#[test]
fn numbers_over_all_flights_are_those_of_sql() {
    let dir = tempfile::tempdir().expect("a directory");
    let arguments = DemoArguments {
        snapshot_every: 20_000,
        ..arguments(dir.path())
    };
    assert_equal(&arguments, "all flights");
}

#[test]
fn arguments_that_make_no_sense_are_named() {
    let dir = tempfile::tempdir().expect("a directory");
    let good = arguments(dir.path());
    let bad = [
        (
            "--events",
            DemoArguments {
                events: Some(0),
                ..good.clone()
            },
        ),
        (
            "--events",
            DemoArguments {
                events: Some(336_777),
                ..good.clone()
            },
        ),
        (
            "--snapshot-every",
            DemoArguments {
                snapshot_every: 0,
                ..good.clone()
            },
        ),
        (
            "--tasks",
            DemoArguments {
                tasks: 0,
                ..good.clone()
            },
        ),
        (
            "--rescale-to",
            DemoArguments {
                rescale_to: 65,
                ..good.clone()
            },
        ),
        (
            "--crash-at",
            DemoArguments {
                crash_at: Some(336_777),
                ..good.clone()
            },
        ),
    ];
    for (argument, arguments) in bad {
        let e = arguments.course(336_776).expect_err(argument);
        assert_eq!(e.fact("argument"), Some(argument), "{e}");
    }
    assert!(good.course(336_776).is_ok());
}
