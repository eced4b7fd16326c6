//! The suite is tested, too: a backend that gets one thing wrong fails the case that is there for
//! it, by name, which the right backend passes (`reference.rs`).

use std::panic::{AssertUnwindSafe, catch_unwind};

use conformance_tests::{CASES, Flaw};

/// Asserts that `flaw` makes the case called `name` fail.
#[track_caller]
fn assert_caught(flaw: Flaw, name: &str) {
    let (_, case) = CASES
        .iter()
        .find(|(other, _)| *other == name)
        .expect("the case exists");
    let outcome = catch_unwind(AssertUnwindSafe(|| case(&Some(flaw))));
    assert!(
        outcome.is_err(),
        "{name} passes a backend with the flaw {flaw:?}"
    );
}

macro_rules! caught {
    ($($test:ident: $flaw:ident by $case:ident;)*) => {
        $(
            #[test]
            fn $test() {
                assert_caught(Flaw::$flaw, stringify!($case));
            }
        )*
    };
}

caught! {
    ignored_ranges_are_caught: IgnoresRanges by r1_two_tasks_become_four;
    forgotten_deletes_are_caught: ForgetsDeletes by x12_map_writes_in_every_order;
    forgotten_clears_are_caught: ForgetsClears by x12_list_writes_in_every_order;
    clears_of_too_much_are_caught: ClearsTooMuch by x12_list_writes_in_every_order;
    reversed_segments_are_caught: ReversesSegments by s1_a_snapshot_shows_its_moment;
    lost_list_order_is_caught: LosesListOrder by p11_a_list_keeps_duplicates_and_order;
    renumbered_lists_are_caught: RenumbersLists by x13_appends_after_a_restore_come_last_and_once;
    dropped_duplicates_are_caught: DropsDuplicates by p11_a_list_keeps_duplicates_and_order;
    dropped_namespaces_are_caught: DropsNamespaces by p28_a_namespace_lists_its_own_keys;
    joined_keys_are_caught: JoinsKeyAndNamespace by p27_keys_with_a_common_prefix_stay_apart;
    keys_listed_twice_are_caught: ListsKeysTwice by p29_a_key_with_many_entries_is_listed_once;
    live_listings_are_caught: ListsLive by p31_keys_are_changed_while_they_are_listed;
    live_snapshots_are_caught: SnapshotsLive by s2_writes_during_a_snapshot_stay_out_of_it;
    fresh_starts_are_caught: StartsFresh by x3_a_missing_object_is_named;
    skipped_checksums_are_caught: SkipsChecksums by x3_a_flipped_bit_gives_no_wrong_data;
    rolled_back_aborts_are_caught: RollsBack by s7_a_cancelled_snapshot_leaves_no_trace;
    early_coverage_is_caught: CoversTooEarly by x9_a_failed_write_is_an_error_and_loses_nothing;
    references_to_newer_segments_are_caught: RefersToNewer by x14_pending_snapshots_end_in_any_order;
    reuse_in_full_snapshots_is_caught: ReusesInFull by s1_a_snapshot_shows_its_moment;
    hidden_failures_are_caught: HidesFailures by x9_a_failed_write_is_an_error_and_loses_nothing;
    full_increments_are_caught: WritesEverything by x4_increments_cost_what_changed;
    kept_tombstones_are_caught: KeepsTombstones by x15_churn_without_snapshots_is_bounded;
    copies_at_a_freeze_are_caught: CopiesAtFreeze by x6_a_freeze_copies_nothing;
    counted_writes_are_caught: CountsWrites by p9_entries_are_counted_exactly;
    foreign_keys_are_caught: TakesForeignKeys by x18_a_key_of_another_task_is_refused;
    ignored_limits_are_caught: IgnoresLimits by x11_too_large_is_refused_with_the_limit_named;
    ignored_identity_is_caught: IgnoresIdentity by x18_another_hash_function_is_refused;
    ignored_kinds_are_caught: IgnoresKinds by contract_calls_of_another_kind_are_refused;
    dropped_empty_values_are_caught: DropsEmptyValues by x11_empty_and_longest_keys_work;
    empty_maps_left_behind_are_caught: KeepsEmptyMaps by p24_a_map_is_empty_after_its_last_removal;
    ignored_bounds_are_caught: IgnoresBounds by p22_a_scan_keeps_to_its_bounds;
    triggers_in_any_order_are_caught: IgnoresTriggerOrder by contract_trigger_ids_grow;
    forgotten_sweeps_are_caught: ForgetsSweeps by t16_a_sweep_removes_all_that_has_expired;
    sweeps_of_the_living_are_caught: SweepsLiving by t17_t18_a_sweep_beside_everything_takes_nothing_that_lives;
    stored_expired_entries_are_caught: StoresExpired by t14_a_snapshot_holds_nothing_that_had_expired;
    restored_expired_entries_are_caught: RestoresExpired by x16_nothing_that_had_expired_comes_back;
    stopped_clocks_are_caught: StopsItsClock by t14_a_snapshot_holds_nothing_that_had_expired;
    expired_reads_are_caught: ReadsExpired by t3_a_write_gives_life_and_a_read_does_not;
    timers_added_twice_are_caught: AddsTimersTwice by q1_a_timer_is_added_once_and_the_head_is_told;
    mixed_equal_times_are_caught: MixesEqualTimes by q3_pops_follow_the_order_and_removals_answer;
    false_heads_are_caught: AlwaysChangesHead by q1_a_timer_is_added_once_and_the_head_is_told;
    foreign_timers_are_caught: RestoresAllTimers by r1_timers_go_where_their_keys_go;
    forgotten_pops_are_caught: ForgetsPops by s1_s2_a_snapshot_holds_the_timers_of_its_moment;
    single_updates_are_caught: UpdatesOnce by contract_batches_agree_with_single_calls;
}
