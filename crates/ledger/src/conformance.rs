//! The suite every store passes. A store brings a [`Bench`]; [`crate::conformance!`] makes one test per fact.
//!
//! Facts are about answers and rows, through the doors wherever possible; [`Bench::run`] and [`Bench::count`]
//! look behind them where the promise is about tables.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::Ledger;

pub mod accept;
pub mod ageing;
pub mod chat;
pub mod history;
pub mod hub;
pub mod janitor;
pub mod link;
pub mod manage;
pub mod race;
pub mod status;
pub mod stretches;
pub mod town;
pub mod wayin;
pub mod webhook;
pub mod window;

/// Every table of a ledger.
pub const TABLES: &[&str] = &[
    "mesh",
    "issuer",
    "node",
    "member",
    "api_token",
    "invite",
    "challenge",
    "nonce",
    "ticket",
    "conversation",
    "subscription",
    "message",
    "dedupe",
    "outlived",
    "delivery",
    "mention_index",
    "webhook",
    "webhook_call",
    "hub_record",
    "idem",
    "escalation",
    "read_mark",
    "sign_in",
    "session",
    "socket_ticket",
    "ageing",
    "inbox_mark",
    "went_back",
];

/// An empty store to try, and a hand on its clock and tables.
#[async_trait]
pub trait Bench: Send + Sync + Sized {
    /// A new one.
    async fn start() -> Self;

    /// The ledger over it.
    fn ledger(&self) -> Arc<dyn Ledger>;

    /// Lets time pass on the store's clock.
    fn advance(&self, span: Duration);

    /// Sets the store's clock ahead; no time passes.
    fn set_ahead(&self, span: Duration);

    /// Sets the store's clock back.
    fn set_back(&self, span: Duration);

    /// Closes the ledger and opens it again over the same tables.
    async fn reopen(&mut self);

    /// Changes tables behind the ledger's back.
    async fn run(&self, sql: &str);

    /// Counts a table's rows.
    async fn count(&self, table: &str) -> u64;
}

/// Makes one test per fact for a [`Bench`], given by its path from the crate's root.
#[macro_export]
macro_rules! conformance {
    ($bench:ty) => {
        $crate::conformance! { @facts $bench;
            chat [
                a9_1_and_7_from_the_start_come_all_rows_and_a_cursor_that_is_read_back
                a9_2_at_the_end_nothing_comes_and_the_cursor_stays
                a9_3_and_5_between_two_cursors_lies_only_the_gap
                a9_4_rows_of_one_instant_keep_an_order_and_are_resumed_amid
                a9_6_a_malformed_cursor_is_told_as_one
                a_follower_gets_the_rows_after_its_place_and_the_places_number
                a_log_is_followed_by_who_may_read_it_and_by_a_broker
                seq_order_is_the_order_of_time_and_id
                the_clock_set_back_leaves_the_order_of_commits
                a_clock_set_back_by_more_than_a_second_is_told
                an_emptied_log_has_a_new_epoch_and_old_places_are_gone
                emptying_goes_on_over_many_rounds
                heads_are_told_of_the_logs_that_exist
                reading_marks_deliveries_and_never_goes_back
                a_question_and_its_answer_are_edges_in_order
                a_question_asked_and_answered_in_one_frame_is_two_edges
                what_waits_is_told_to_those_who_may_read_it
                a_paused_conversation_takes_messages_and_a_closed_one_none
                nodes_are_listed_with_what_is_held_for_them
                a_sign_in_key_opens_one_session_in_its_time
                many_uses_of_one_sign_in_key_open_one_session
                a_session_ends_with_its_time_its_end_and_its_member
                a_socket_ticket_is_used_once_in_its_time
                what_is_over_is_swept
            ]
            accept [
                a_retry_is_answered_with_the_first_receipt
                an_id_used_for_another_text_is_refused_with_what_it_holds
                two_senders_one_id_one_text_are_two_messages
                no_refusal_leaves_a_row_in_any_table
                a_removed_sender_is_refused
                an_unknown_topic_is_made_in_an_open_mesh_and_refused_in_a_declared_one
                a_committed_id_keeps_its_answer_after_its_deadlines
                a_permanent_refusal_lets_the_lane_go_on_and_a_conditional_one_ends_it
                an_id_twice_in_one_frame_is_one_message
                an_id_refused_and_repeated_in_one_frame_gets_its_own_turn
                topic_recipients_are_subscribers_and_mentioned_without_the_sender
                a_direct_message_reaches_its_one_member_by_name_by_key_and_oneself
                a_third_member_named_in_a_direct_message_gets_nothing
                a_member_the_broker_hosts_has_its_message_at_once
                a_topic_without_readers_is_accepted_history
                places_are_gapless_and_instants_rise_when_the_clock_goes_back
                a_fenced_link_writes_nothing
                a_question_waits_until_another_member_speaks
                what_was_answered_is_there_after_a_restart
                a_commit_wakes_whoever_waits
            ]
            race [
                sixty_four_copies_of_one_id_are_one_message
                sixty_four_texts_under_one_id_are_one_message
                a_refusal_among_many_touches_nobody_else
                many_lanes_at_once_keep_their_own_order
                an_id_is_accepted_or_retired_and_never_both
                a_ticket_used_sixty_four_times_at_once_joins_once
                tickets_of_one_invite_used_at_once_join_once
            ]
            wayin [
                setup_makes_one_mesh_and_one_key_for_good
                a_join_registers_node_key_and_person_at_once
                each_state_of_an_invite_has_its_code
                a_nonce_is_claimed_with_its_ticket_and_only_then
                an_invite_has_few_live_tickets
                each_state_of_a_ticket_has_its_code
                a_ticket_that_opens_no_link_lets_a_node_in_and_leaves_its_link
                the_second_ticket_of_an_invite_joins_nobody
                ce13_a_revoked_invite_joins_nobody
                a_name_or_key_of_another_node_is_refused
                a_taken_person_name_is_extended_by_the_node
                each_state_of_a_challenge_has_its_code
                a_removed_node_finds_every_door_closed
                what_is_over_is_forgotten_after_a_while
            ]
            link [
                a_link_opens_with_the_members_at_home_and_an_unknown_one_does_not
                ce8_mail_from_before_a_lost_inbox_is_marked_redelivered
                ce6_a_ledger_that_lost_rows_is_noticed
                a_restored_ledger_gets_its_members_back
                t10_an_inbox_that_went_back_is_sent_what_it_lacks_again
                t10_what_was_never_told_is_sent_again_too_and_what_is_kept_is_not
                t10_work_that_was_begun_since_the_copy_is_told_again
                t10_a_restored_inbox_is_told_what_was_begun_since_although_it_lacks_nothing
                t10_a_restored_inbox_that_had_told_no_place_is_remembered
                t10_an_inbox_that_is_whole_or_says_nothing_is_sent_nothing_again
                a_ledger_that_went_back_names_the_time_it_lost
            ]
            window [
                mail_comes_oldest_first_with_everything_a_recipient_needs
                a_window_leaves_out_what_is_unacked_and_stops_at_its_limit
                acked_rows_leave_the_window_and_rungs_only_rise
                ce7_a_late_ack_is_truth_from_any_state
                an_ack_counts_only_for_members_at_home
                the_broker_acks_for_the_members_it_hosts
                instants_from_the_future_are_cut_to_now
                receipts_are_told_until_they_are_acked_and_again_when_they_rise
                topic_rungs_are_kept_and_not_told
                a_fenced_link_sees_and_changes_nothing
                whatever_is_left_to_be_seen_to_stirs
            ]
            history [
                pages_lead_back_to_the_start_and_keep_the_head
                following_from_any_place_gives_each_row_once
                an_empty_log_is_followed_from_its_start
                a_direct_conversation_is_read_by_its_two_and_unknown_to_others
                a_removed_member_reads_nothing
                a_cursor_of_another_log_or_a_forged_one_is_invalid
                ce9_a_cursor_below_the_floor_is_told_and_never_skipped_over
                ce11_a_floor_with_another_id_is_no_place
                conversations_are_listed_last_active_first
            ]
            stretches [
                mail_that_comes_together_is_one_stretch_until_the_last_is_taken_in_any_order
                a_pruned_message_and_one_past_its_time_take_their_stretches_along
                a_row_that_no_stretch_leads_to_is_an_orphan
            ]
            status [
                a_question_without_a_fence_changes_nothing
                ce1_a_fenced_id_is_never_accepted
                ce3_past_the_window_an_absent_id_is_unknown
                ce3_a_copy_past_its_deadline_is_not_accepted_again
                ce4_another_body_under_the_id_is_told_apart
                a_link_asks_about_its_own_members_only
                an_id_nobody_used_is_not_known
                a_retired_id_is_forgotten_one_window_after_the_fence
                a_row_that_was_the_reason_of_a_no_is_kept_for_a_window
            ]
            manage [
                a_name_belongs_to_one_home_for_ever
                members_are_listed_by_name_page_by_page
                a_person_goes_with_its_node_and_everybody_at_home_there
                subscribing_twice_is_subscribing_once
                a_closed_conversation_takes_nothing_until_it_is_opened
                a_token_acts_as_its_member_until_it_is_revoked
                a_lower_window_does_not_shorten_rows_that_exist
            ]
            janitor [
                an_expired_id_answers_until_it_is_swept_and_is_new_afterwards
                pruning_removes_a_message_whole_and_says_so
                pruning_goes_in_bounded_rounds_from_the_oldest
                undelivered_rows_end_at_their_deadline_or_after_the_bound
                the_audit_finds_each_kind_of_contradiction
                the_audit_finds_a_wrong_place_a_missing_delivery_and_a_mention_of_nothing
                explain_gives_every_fact_by_either_id
                a_kept_message_is_explained_by_its_id_after_the_id_was_forgotten
            ]
            ageing [
                a_clock_ahead_by_the_window_for_an_hour_frees_no_id_and_ends_nothing
                a_jump_ahead_is_told_and_a_clock_that_keeps_its_word_for_a_day_is_believed
                restarts_under_a_clock_that_is_ahead_bear_nothing_out
                a_copy_is_judged_by_what_may_be_forgotten_and_not_by_a_clock_that_is_ahead
                a_date_that_was_believed_and_set_right_refuses_what_was_forgotten_and_nothing_fresh
                what_is_stored_under_a_clock_that_stands_behind_keeps_its_time_when_it_is_set_right
            ]
            webhook [
                a_pushed_member_has_what_its_endpoint_took
                calls_of_a_log_come_one_by_one_in_its_order
                a_call_put_off_holds_up_its_own_log_alone
                a_schedule_survives_a_restart
                a_lapsed_claim_is_anybodys_and_its_holder_may_only_tell_of_success
                many_claims_at_once_never_share_a_row
                an_endpoint_gets_few_calls_at_once_and_others_go_on
                who_waited_longest_is_served_first
                a_row_given_up_ends_and_its_log_goes_on
                claims_that_all_lapse_use_the_attempts_up
                a_row_past_its_deliver_by_is_not_pushed
                a_row_that_ended_elsewhere_does_not_delay_the_next
                a_disabled_webhook_keeps_its_rows_until_it_is_enabled
                a_rotated_secret_signs_beside_the_new_one_for_a_while
                a_removed_webhook_takes_its_rows_and_subscriptions_along
                a_removed_member_takes_its_webhook_along
                only_a_hosted_service_gets_a_webhook_and_only_one
                a_list_shows_each_webhook_without_its_secrets
            ]
            hub [
                a_write_is_applied_once_and_answered_alike_ever_after
                a_key_of_another_request_is_refused_and_another_principals_is_its_own
                no_refused_hub_write_leaves_a_row_in_any_table
                versions_rise_and_a_precondition_names_one
                a_deleted_record_goes_on_counting
                a_batch_is_applied_whole_in_its_order_or_names_what_failed
                a_list_is_followed_by_place_and_a_changed_record_comes_again
                instants_of_a_record_rise_when_the_clock_goes_back
                sixty_four_copies_of_one_key_are_one_effect
                sixty_four_writers_who_saw_one_version_make_one_change
                a_key_is_used_or_retired_and_never_both
                ce19_ce20_a_fenced_key_is_never_applied
                ce21_a_copy_that_may_be_forgotten_is_refused
                a_key_is_kept_for_its_days_and_forgotten_in_bounded_rounds
                a_message_is_read_by_its_recipient_once
                a_readers_messages_lead_back_to_the_first_and_are_no_others
                a_messages_id_is_a_key_too
            ]
        }
    };
    (@facts $bench:ty; $($module:ident [ $($fact:ident)* ])*) => {$(
        mod $module {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $fact() {
                    let bench = <$bench as $crate::conformance::Bench>::start().await;
                    $crate::conformance::$module::$fact(bench).await;
                }
            )*
        }
    )*};
}
