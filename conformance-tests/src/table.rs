//! The one list of cases, and what is made of it.

use crate::backend::BackendUnderTest;

/// A case: its name, and a function that panics if the backend does not behave.
pub type Case = (&'static str, fn(&dyn BackendUnderTest));

/// Makes one named `#[test]` of each case of the suite.
///
/// Its argument is an expression that gives a [`BackendUnderTest`], such as a closure; each test
/// evaluates it for itself. See the [crate's documentation](crate) for an example.
#[macro_export]
macro_rules! conformance {
    (@tests [$under_test:expr] $($module:ident { $($case:ident,)* })*) => {
        $($(
            #[test]
            fn $case() {
                $crate::cases::$module::$case(&$under_test);
            }
        )*)*
    };
    (@table [] $($module:ident { $($case:ident,)* })*) => {
        &[$($((stringify!($case), $crate::cases::$module::$case)),*),*]
    };
    (@list $made:ident [$($argument:tt)*]) => {
        $crate::conformance! { @$made [$($argument)*]
            values {
                p1_a_fresh_key_is_absent,
                p2_a_value_goes_default_written_default,
                p4_defaults_are_not_shared,
                p6_keys_do_not_touch_each_other,
                p7_two_states_under_one_key_are_both_restored,
                p8_a_view_is_read_elsewhere_while_the_owner_writes,
                p9_entries_are_counted_exactly,
                s13_a_failing_codec_fails_at_the_write,
                contract_batches_agree_with_single_calls,
                contract_an_update_keeps_puts_and_clears,
                contract_dropped_reads_change_nothing,
            }
            lists {
                p10_a_fresh_key_has_no_list,
                p11_a_list_keeps_duplicates_and_order,
                p12_an_update_replaces_the_list,
                p13_adding_nothing_changes_nothing,
                p16_a_list_reads_the_same_twice,
                x13_appends_after_a_restore_come_last_and_once,
                x13_a_scale_in_joins_tasks_of_unequal_age,
            }
            maps {
                p22_map_calls_agree,
                p22_a_scan_keeps_to_its_bounds,
                p23_an_empty_map_is_walked,
                p24_a_map_is_empty_after_its_last_removal,
                p25_writes_through_a_cursor_show,
                p26_a_walk_that_removes_meets_each_entry_once,
                p27_keys_with_a_common_prefix_stay_apart,
                x11_a_map_of_a_million_entries,
            }
            expiry {
                t1_t2_nothing_is_there_before_a_write_and_after_a_clear,
                t3_a_write_gives_life_and_a_read_does_not,
                t4_another_write_begins_anew,
                t5_a_read_removes_what_has_expired,
                t6_times_survive_restores,
                t7_what_has_expired_may_be_shown_once,
                t8_reads_refresh,
                t8_a_refresh_has_a_granularity,
                t9_refreshed_and_shown_until_removed,
                t10_the_longest_time_to_live_is_for_ever,
                t11_merging_leaves_out_what_has_expired,
                t12_t13_keys_and_namespaces_expire_on_their_own,
                t14_a_snapshot_holds_nothing_that_had_expired,
                t15_a_restore_takes_later_times_back,
                t23_contains_agrees_with_get,
                t25_what_has_expired_is_absent_and_0_is_no_time,
                t3_a_view_hides_what_has_expired,
                t5_batches_remove_and_refresh_like_single_calls,
            }
            expiry_sweeps {
                t16_a_sweep_removes_all_that_has_expired,
                t17_t18_a_sweep_beside_everything_takes_nothing_that_lives,
                x16_nothing_that_had_expired_comes_back,
                t26_without_a_time_to_live_entries_are_permanent,
                t27_a_time_to_live_begins_with_the_next_write_or_at_once,
                t28_a_longer_time_to_live_is_taken,
                t26_t27_a_switch_in_use_is_refused,
            }
            expiry_model {
                x2_any_sequence_with_a_moving_clock_agrees_with_a_model,
            }
            timers {
                q1_a_timer_is_added_once_and_the_head_is_told,
                q2_a_range_has_exactly_its_own_timers,
                q3_pops_follow_the_order_and_removals_answer,
                s1_s2_a_snapshot_holds_the_timers_of_its_moment,
                r1_timers_go_where_their_keys_go,
                x6_a_freeze_copies_no_timers,
                contract_timers_are_no_keyed_entries,
            }
            merging {
                p17_lists_of_namespaces_are_merged,
                p17_maps_of_namespaces_are_merged,
                p18_a_reduced_value_is_folded_in_order,
                p19_reduced_values_of_namespaces_are_merged,
                p20_accumulators_are_kept_apart,
                p21_accumulators_of_namespaces_are_merged,
            }
            keys {
                p28_a_namespace_lists_its_own_keys,
                p29_a_key_with_many_entries_is_listed_once,
                p30_keys_in_two_namespaces_are_listed_for_each,
                p31_keys_are_changed_while_they_are_listed,
            }
            snapshots {
                s1_a_snapshot_shows_its_moment,
                s2_writes_during_a_snapshot_stay_out_of_it,
                s3_a_later_snapshot_overtakes_a_blocked_one,
                s4_no_state_is_an_empty_snapshot,
                s4_no_registered_state_is_an_empty_snapshot,
                s5_untouched_state_is_in_the_next_snapshot,
                s10_states_are_registered_between_snapshots,
                s12_restored_state_outlives_its_snapshot,
                s14_a_snapshot_reports_its_size_and_range,
                contract_trigger_ids_grow,
                r4_no_parts_in_range_restore_as_nothing,
            }
            failures {
                s6_closing_the_backend_ends_its_snapshot,
                s6_a_snapshot_of_a_closed_store_ends,
                s7_a_cancelled_snapshot_leaves_no_trace,
                s7_a_late_write_of_an_aborted_snapshot,
                x9_a_failed_write_is_an_error_and_loses_nothing,
                x14_pending_snapshots_end_in_any_order,
                x14_overlapping_writes_end_in_any_order,
            }
            rescale {
                r1_four_tasks_become_two,
                r1_two_tasks_become_four,
                r1_tasks_registered_different_states,
                r2_fifteen_tasks_become_seventy_seven_and_back,
                r2_three_tasks_become_a_thousand_and_back,
                r3_ranges_are_a_fair_split,
                r4_only_segments_in_range_are_handed_over,
                r10_each_task_gets_its_own_state_back,
            }
            orders {
                x12_list_writes_in_every_order,
                x12_map_writes_in_every_order,
                x12_value_writes_in_every_order,
            }
            increments {
                x4_increments_cost_what_changed,
                x4_an_increment_of_nothing_is_small,
                x4_large_lists_and_maps_cost_what_changed,
                x6_a_freeze_copies_nothing,
                x15_churn_without_snapshots_is_bounded,
                x15_churn_with_failing_snapshots_is_bounded,
                x15_churn_with_full_snapshots_is_bounded,
                x15_churn_with_increments_is_bounded,
            }
            limits {
                x11_the_largest_values_work,
                x11_too_large_is_refused_with_the_limit_named,
                x11_empty_and_longest_keys_work,
            }
            identity {
                x10_another_key_codec_is_refused,
                x18_another_hash_function_is_refused,
                x18_a_custom_hash_function_is_used,
                x18_a_key_of_another_task_is_refused,
                x10_foreign_bytes_are_refused,
                m12_another_kind_or_codec_is_refused,
                contract_calls_of_another_kind_are_refused,
            }
            damage {
                x3_a_missing_object_is_named,
                x3_a_cut_object_is_named,
                x3_a_flipped_bit_gives_no_wrong_data,
                x3_a_swapped_object_is_named,
            }
            model {
                x2_any_sequence_agrees_with_a_model,
            }
        }
    };
    ($under_test:expr $(,)?) => {
        $crate::conformance! { @list tests [$under_test] }
    };
}

/// Every case, in the order of the macro's list.
pub const CASES: &[Case] = conformance!(@list table []);
